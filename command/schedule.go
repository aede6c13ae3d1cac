package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// collectiveOrFile resolves the argument of show, check or sim: the name of a
// collective, or a file with a schedule. Its errors are ready to be returned by a
// verb.
func collectiveOrFile(arg string, memory size) (c sched.Collective, s *sched.Schedule, err error) {
	c, unknown := sched.ParseCollective(arg)
	if unknown == nil {
		return c, nil, nil
	}
	data, err := readFile(arg, memory)
	switch {
	case os.IsNotExist(err) && algo.IsFile(arg):
		return 0, nil, callErrorf("there is no file %s", arg)
	case os.IsNotExist(err):
		return 0, nil, callErrorf("%s is neither a file nor a collective: %w", arg, unknown)
	}
	if err != nil {
		return 0, nil, callError{err}
	}
	s, err = sched.Parse(data)
	if err != nil {
		return 0, nil, callErrorf("%s: %w", arg, err)
	}
	return 0, s, nil
}

// parsing is the memory that a byte of a file can become when it is parsed.
const parsing = 64

// readFile reads a file that can be parsed in so much memory.
func readFile(name string, memory size) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	limit := int64(memory) / parsing
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: more than %d bytes, which can take more than %s of memory: want a smaller file, or a higher --max-memory", name, limit, &memory)
	}
	return data, err
}

// newSchedule is [algo.New] for a schedule whose programs each fit in memory.
//
// A program of some algorithms has p entries. Among many ranks, its size is
// extrapolated from the schedule of far fewer, if there is one.
func newSchedule(c sched.Collective, spec string, p, root, bytes int, memory size) (*sched.Schedule, error) {
	const (
		many     = 1 << 16
		fewer    = 1 << 8
		perEntry = 250 // bytes; while a program is made, all its entries are there twice
	)
	s, err := algo.New(c, spec, p, root, bytes)
	if err != nil || p <= many {
		return s, err
	}
	small, err := algo.New(c, spec, p/fewer, root/fewer, bytes)
	if err != nil {
		return s, nil
	}
	entries := 0
	for _, step := range small.Program(small.Root) {
		entries += 1 + len(step.Copies) + len(step.Sends) + len(step.Recvs)
	}
	if need := float64(entries) * fewer * perEntry; need > float64(memory) {
		return nil, &sched.TooLargeError{Doing: "make one program of", P: p, Bytes: need, Limit: int64(memory)}
	}
	return s, nil
}

// hasAlgorithm reports whether the collective has the algorithm that spec names, or the
// file is for it.
func hasAlgorithm(c sched.Collective, spec string) bool {
	if algo.IsFile(spec) {
		s, err := algo.ReadFile(spec)
		return err == nil && s.Collective == c
	}
	name, _, _ := strings.Cut(spec, ",")
	_, err := algo.Lookup(c, name)
	return err == nil
}

// noneOf returns an error if one of the flags is set, which have no meaning for a
// schedule from a file.
func noneOf(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return callErrorf("--%s with a file: the file determines it", name)
		}
	}
	return nil
}
