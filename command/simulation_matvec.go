package command

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// matvec is the name of an operation of several collectives: on a grid of n×n ranks,
// numbered row by row, with one element of the matrix each, the top rank of column c
// broadcasts x[c] down the column, and each row reduces its products to its leftmost
// rank.
const matvec = "matvec"

// matvec sets its scenario: n broadcasts, then n reductions.
func (s *simulation) matvec(cmd *cobra.Command, e *scenario) error {
	if e.p == 0 {
		return s.noRanks()
	}
	n := int(math.Round(math.Sqrt(float64(e.p))))
	if n*n != e.p {
		low := int(math.Sqrt(float64(e.p)))
		return fmt.Errorf("matvec on %d ranks: want a square, %d or %d", e.p, low*low, (low+1)*(low+1))
	}
	if cmd.Flags().Changed("root") {
		return fmt.Errorf("--root with matvec: its roots are the first row and the first column")
	}
	spec := s.algorithm
	switch {
	case spec == "":
		spec = "binomial"
	case s.isBest():
		return fmt.Errorf("--algorithm %s with matvec: want one that both bcast and reduce have, such as binomial", spec)
	}
	words := s.words
	if !cmd.Flags().Changed("words") {
		words = 1
	}
	if err := checkWords(words, e.p); err != nil {
		return err
	}
	e.formula = &formula{words: words}
	for _, c := range []sched.Collective{sched.Bcast, sched.Reduce} {
		schedule, err := newSchedule(c, spec, n, 0, wordBytes*words, s.memory)
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("words") {
			words = fitting(schedule, words)
		}
		for i := range n {
			e.parts = append(e.parts, sim.Part{Schedule: schedule, Ranks: line(c, i, n)})
		}
		e.algorithm = schedule.Algorithm
	}
	for i := range e.parts {
		e.parts[i].Words = words
	}
	for _, part := range []*sim.Part{&e.parts[0], &e.parts[n]} {
		f, err := priced(part.Schedule, part.Schedule.Algorithm, wordBytes*words, words)
		if err != nil {
			return err
		}
		e.formula.add(part.Schedule.Collective, f)
		e.bound = e.bound.Plus(algo.LowerBound(part.Schedule.Collective, n, float64(words)))
	}
	e.collective, e.m = matvec, words
	e.title = fmt.Sprintf("matvec %s: %dx%d ranks, m = %s", e.algorithm, n, n, plural(words, "word"))
	return nil
}

// line returns the ranks of column i for a broadcast, and of row i for a reduction.
func line(c sched.Collective, i, n int) []int {
	ranks := make([]int, n)
	for j := range ranks {
		if ranks[j] = i*n + j; c == sched.Bcast {
			ranks[j] = j*n + i
		}
	}
	return ranks
}

// add adds the formula of one more collective to f.
func (f *formula) add(c sched.Collective, more *formula) {
	if f.text != "" {
		f.text += "; "
	}
	f.text += fmt.Sprintf("%v %s, p = √ranks", c, more.text)
	f.words, f.allPort = more.words, f.allPort || more.allPort
	f.cost = f.cost.Plus(more.cost)
}
