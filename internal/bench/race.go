package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
)

// A Race measures a cell by several algorithms. The first one is the one to beat: the
// others are compared with it.
type Race struct {
	Cell       Cell
	Algorithms []string // as for [chorale.WithAlgorithm]
	// Margin is by which part of its time an algorithm has to be faster than the first one.
	Margin float64
}

// A Runner is an algorithm in a race. The times of a round follow each other, so that what
// disturbs the machine for longer disturbs all of them.
type Runner struct {
	Algorithm string  `json:"algorithm"`
	Time      float64 `json:"time"`   // the median, in µs per call
	Ratio     float64 `json:"ratio"`  // the median, over rounds, of its time over that of the first one
	Low       float64 `json:"low"`    // the interval that holds the true median of the ratios
	High      float64 `json:"high"`   // with a confidence of 95 %; 0 to maxRatio if the rounds are too few to tell
	Rounds    int     `json:"rounds"` // until the race was over, or it was dropped
}

// Wins reports whether a runner is faster than the first one by a margin.
func (r Runner) Wins(margin float64) bool { return r.High < 1-margin }

const (
	raceBatch  = 300.0 // the least time of a batch of calls, in µs
	dropRounds = 3     // after which an algorithm that was slower each time is dropped
	minRounds  = 9
	maxRounds  = 25
	maxRatio   = 1e9
)

// Race runs a race. In each round, every algorithm makes a batch of calls, in an order that
// changes. An algorithm is dropped when it has been slower than the first one in each of the
// first rounds, or as soon as it is clear that it is not faster by the margin. The race is
// over when every algorithm is dropped or clearly faster, after maxRounds at most. With
// [Bench.Verify], results are verified once. Race is collective.
func (b *Bench) Race(ctx context.Context, race Race) ([]Runner, error) {
	runners := make([]*runner, len(race.Algorithms))
	for i, algorithm := range race.Algorithms {
		cell := race.Cell
		cell.Algorithm = algorithm
		if err := cell.Valid(); err != nil {
			return nil, err
		}
		if err := b.reserve(cell); err != nil {
			return nil, err
		}
		runners[i] = &runner{algorithm: algorithm, subject: b.subjectOf(cell)}
		if err := runners[i].begin(ctx, b); err != nil {
			return nil, fmt.Errorf("%s by %s: %w", cell.Name(), algorithm, err)
		}
	}
	mine, slowest := make([]float64, len(runners)), make([]float64, len(runners))
	for round := 0; !over(runners, round, race.Margin); round++ {
		for k := range runners {
			i := k
			if round%2 > 0 {
				i = len(runners) - 1 - k
			}
			r := runners[i]
			if mine[i] = 0; r.dropped {
				continue
			}
			took, err := b.loop.batch(ctx, b.Comm, r.calls, r.subject.run)
			if err != nil {
				return nil, err
			}
			mine[i] = took
		}
		if err := chorale.AllReduce(ctx, b.Comm, slowest, mine, chorale.Max); err != nil {
			return nil, err
		}
		for i, r := range runners {
			if !r.dropped {
				r.times = append(r.times, slowest[i]/float64(r.calls))
				r.ratios = append(r.ratios, r.times[round]/runners[0].times[round])
				r.dropped = i > 0 && isHopeless(r.ratios, race.Margin)
			}
		}
	}
	results := make([]Runner, len(runners))
	for i, r := range runners {
		results[i] = r.result()
	}
	return results, nil
}

// A runner is one rank's part of a Runner. All ranks have the same times, so that they take
// the same decisions.
type runner struct {
	algorithm     string
	subject       subject
	calls         int // in a batch
	times, ratios []float64
	dropped       bool
}

// begin makes the calls that compile programs, and finds the number of calls in a batch.
func (r *runner) begin(ctx context.Context, b *Bench) error {
	check := r.subject.verify
	if !b.Verify {
		check = r.subject.run
	}
	for range r.subject.first() {
		if err := check(ctx); err != nil {
			return err
		}
	}
	for r.calls = 1; ; r.calls *= 2 {
		if _, err := b.loop.runBatches(ctx, b.Comm, time.Now(), r.calls, 2, r.subject.run); err != nil {
			return err
		}
		if min(b.loop.slowest[0], b.loop.slowest[1]) >= raceBatch || r.calls >= maxCalls {
			return nil
		}
	}
}

func (r *runner) result() Runner {
	low, high := medianInterval(r.ratios)
	return Runner{
		Algorithm: r.algorithm, Time: summarize(r.times).Median, Ratio: summarize(r.ratios).Median,
		Low: low, High: high, Rounds: len(r.times),
	}
}

// isHopeless reports whether an algorithm with these ratios is not faster by the margin.
func isHopeless(ratios []float64, margin float64) bool {
	if len(ratios) >= dropRounds && slices.Min(ratios) > 1 {
		return true
	}
	low, _ := medianInterval(ratios)
	return low >= 1-margin
}

// over reports whether a race is over after so many rounds.
func over(runners []*runner, round int, margin float64) bool {
	decided := true
	left := 0
	for _, r := range runners[1:] {
		if r.dropped {
			continue
		}
		left++
		_, high := medianInterval(r.ratios)
		decided = decided && high < 1-margin
	}
	switch {
	case round < dropRounds: // the first one is timed also without another
		return false
	case left == 0, round >= maxRounds:
		return true
	}
	return decided && round >= minRounds
}

// medianInterval returns the interval that holds the true median of samples with a confidence
// of 95 %, whatever their distribution: two of the sorted samples, whose indices follow from
// the binomial distribution. Fewer than six samples cannot tell.
func medianInterval(samples []float64) (low, high float64) {
	n := len(samples)
	k, below, term := 0, 0.0, math.Pow(0.5, float64(n))
	for below+term <= 0.025 {
		below += term
		term *= float64(n-k) / float64(k+1)
		k++
	}
	if k == 0 {
		return 0, maxRatio
	}
	s := slices.Sorted(slices.Values(samples))
	return s[k-1], s[n-k]
}
