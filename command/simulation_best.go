package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// best is the value of --algorithm that lets the formulas select from all algorithms,
// and bestAmong begins the value that names candidates.
const (
	best      = "best"
	bestAmong = best + ",among="
)

// isBest reports whether the formulas select the algorithm.
func (s *simulation) isBest() bool { return nameOfSpec(s.algorithm) == best }

// nameOfSpec returns an algorithm without its parameters.
func nameOfSpec(spec string) string {
	name, _, _ := strings.Cut(spec, ",")
	return name
}

// constraints returns what the formulas select from if the algorithm is best.
func (s *simulation) constraints(spec string) (algo.Constraints, error) {
	needs := algo.Constraints{AllPort: s.ports.value == "all"}
	if among, ok := strings.CutPrefix(spec, bestAmong); ok {
		needs.Candidates = strings.Split(among, "+")
	} else if spec != best {
		return needs, fmt.Errorf("--algorithm %s: want %s, or some to choose from, as in %sbinomial+linear", spec, best, bestAmong)
	}
	return needs, nil
}

// choose returns the algorithm to simulate, and the reason for it unless it was named.
func (s *simulation) choose(cmd *cobra.Command, c sched.Collective, p, m int) (spec, why string, err error) {
	on, err := s.hosts(p)
	switch {
	case err != nil:
		return "", "", err
	case s.algorithm == "":
		q, err := s.query(cmd, c, p, m, on)
		if err != nil {
			return "", "", err
		}
		choice, err := selection.Choose(q)
		return choice.Algorithm, choice.Why(), err
	case !s.isBest():
		return selection.WithHosts(c, s.algorithm, on.text), "", nil
	}
	needs, err := s.constraints(s.algorithm)
	if err != nil {
		return "", "", err
	}
	prices := s.model()
	if s.machine.given(cmd) {
		if prices, err = s.machine.prices(m); err != nil {
			return "", "", err
		}
	}
	pick, err := algo.Cheapest(c, p, s.root, float64(whole(c, p, m)), whole(c, p, wordBytes*m), prices, needs)
	if err != nil {
		return "", "", err
	}
	why = fmt.Sprintf("least for m = %d by the formulas: %s", m, pick.Reason)
	if cmd.Name() == "draw" { // a picture shows the algorithm, and has no room for the reason
		fmt.Fprintln(cmd.ErrOrStderr(), "chosen:", why)
	}
	return pick.Spec, why, nil
}

// query is what the selection of an algorithm depends on: in a job over TCP whose ranks have a
// processor each, or in one on the machine that is simulated.
func (s *simulation) query(cmd *cobra.Command, c sched.Collective, p, m int, on placed) (q selection.Query, err error) {
	q = selection.Query{Collective: c, Ranks: p, Bytes: wordBytes * m, Transport: "tcp"}
	if s.machine.given(cmd) {
		var of *model.Profile
		if s.machine.named(cmd) {
			if of, err = s.machine.read(); err != nil {
				return q, err
			}
		}
		q.Transport = s.machine.transport.value
		if q, err = here(q, of); err != nil {
			return q, err
		}
	}
	if on.hosts > 1 {
		q = q.OnHosts(on.text, on.most)
	}
	return q, nil
}
