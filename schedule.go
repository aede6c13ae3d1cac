package chorale

import (
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/sched"
)

// Schedule returns the schedule that a call would execute: that of a collective,
// as in "allreduce", by an algorithm, as for [WithAlgorithm], among p ranks. For
// "shift", root is the distance. Bytes is the size of the whole vector, by which
// some algorithms choose parameters; 0 if it does not matter.
func Schedule(collective, algorithm string, p, root, bytes int) (*sched.Schedule, error) {
	c, err := sched.ParseCollective(collective)
	if err != nil {
		return nil, err
	}
	return algo.New(c, algorithm, p, root, bytes)
}

// Algorithms returns the names of the algorithms of a collective, as in
// "allreduce". It returns nil if there is no such collective.
func Algorithms(collective string) []string {
	c, err := sched.ParseCollective(collective)
	if err != nil {
		return nil
	}
	return selection.Algorithms(c)
}
