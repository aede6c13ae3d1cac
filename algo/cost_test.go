package algo_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A moment is what happens in one step, counted over all ranks.
type moment struct {
	copies   []sched.RankCopy
	messages []sched.Message // in the order in which ranks with one port send them
}

// moments returns the copies and messages of a schedule, step by step.
func moments(t *testing.T, s *sched.Schedule) []moment {
	t.Helper()
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatalf("%s: %v", describe(s), err)
	}
	all := make([]moment, timeline.Steps())
	for i := range all {
		all[i] = moment{timeline.Copies(i), timeline.Messages(i)}
		slices.SortStableFunc(all[i].messages, func(a, b sched.Message) int {
			return cmp.Or(cmp.Compare(a.Send, b.Send), cmp.Compare(a.Dest, b.Dest))
		})
	}
	return all
}

// timeOf returns how long s takes under m if every block is a word. A rank sends
// one message at a time and receives one at a time, unless it uses all ports;
// both ends of a message are busy until it is across; combining follows. What
// copies combine comes before the messages of their step.
func timeOf(s *sched.Schedule, steps []moment, m model.Model, allPorts bool) float64 {
	done := make([]float64, s.P) // when a rank has finished its earlier steps
	sent, received, work := make([]float64, s.P), make([]float64, s.P), make([]float64, s.P)
	for _, step := range steps {
		for i := range step.copies {
			if c := &step.copies[i]; c.How != sched.Replace {
				done[c.Rank] += float64(c.Blocks.Len()) * m.Top
			}
		}
		copy(sent, done)
		copy(received, done)
		clear(work)
		for i := range step.messages {
			message := &step.messages[i]
			words := float64(message.Blocks.Len())
			start := max(sent[message.From], received[message.To])
			if allPorts {
				start = max(done[message.From], done[message.To])
			}
			across := start + m.Ts + words*m.Tw
			sent[message.From] = max(sent[message.From], across)
			received[message.To] = max(received[message.To], across)
			if message.How != sched.Replace {
				work[message.To] += words * m.Top
			}
		}
		for r := range done {
			done[r] = max(sent[r], received[r]) + work[r]
		}
	}
	return slices.Max(done)
}

// models are such that each charge is seen alone, and all together.
var models = []model.Model{
	{Ts: 1},
	{Tw: 1},
	{Top: 1},
	{Ts: 100, Tw: 3, Top: 1},
}

// inexact says by which factors what a schedule takes may differ from what the
// catalog says, where that is not exact for every number of ranks and root.
var inexact = map[string]struct{ least, most float64 }{
	"allreduce recursive-multiplying": {1, 1.5}, // a pair is late for its first meeting
}

// alike reports whether a hierarchical schedule costs as much as if all hosts had as
// many ranks. A vector in one piece does if their numbers differ by one at most,
// the larger ones first. Several leaders do not all begin at once.
func alike(s *sched.Schedule) bool {
	if strings.Contains(s.Algorithm, "leaders=") {
		return false
	}
	_, hosts, given := strings.Cut(s.Algorithm, "hosts=")
	hosts, _, _ = strings.Cut(strings.TrimPrefix(hosts, "cyclic:"), ",")
	n, err := strconv.Atoi(hosts)
	if !given {
		n = int(math.Round(math.Sqrt(float64(s.P)))) // of hosts, or of ranks on each
		err = nil
	}
	return err == nil && (s.P%n == 0 || !s.Partitioned() && s.Blocks == 1)
}

// On an idle network without distances, what the catalog says is what the
// schedule takes: for every algorithm, number of ranks and root.
//
// CLAIM G1 G14 S3 I1 I2 I3 V1 V3 V4 D1
func TestEverySchedulesCostIsThatOfTheCatalog(t *testing.T) {
	everySchedule(t, sizes[1:], func(t *testing.T, s *sched.Schedule) {
		cost, err := algo.Price(s.Collective, s.Algorithm, s.P, s.Root, algo.VariantBytes, float64(s.Blocks))
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(s.Algorithm, ",")
		a, err := algo.Lookup(s.Collective, name)
		if err != nil {
			t.Fatal(err)
		}
		bound, ok := inexact[fmt.Sprintf("%v %s", s.Collective, name)]
		if !ok {
			bound.least, bound.most = 1, 1
		}
		if name == "hierarchical" && !alike(s) {
			bound.least, bound.most = 0.5, 1
		}
		steps := moments(t, s)
		for _, m := range models {
			got, want := timeOf(s, steps, m, a.Restrictions.AllPort), m.Time(cost)
			if got > bound.most*want*(1+1e-9) || got < bound.least*want*(1-1e-9) {
				t.Errorf("%s takes %v under %+v, and the catalog says %v", describe(s), got, m, want)
			}
		}
	})
}

// The books' formulas, where p is a power of two.
//
// CLAIM G1 G14 S3 I1 I2 I3 V1 V3 D1 D3
func TestTheCatalogAgreesWithTheBooks(t *testing.T) {
	const n = 1 << 20
	for d := 1; d <= 20; d++ {
		lg, p := float64(d), float64(int(1)<<d)
		part := n * (p - 1) / p
		rows, columns := float64(int(1)<<(d/2)), float64(int(1)<<(d-d/2))
		square := fmt.Sprintf("%vx%v", rows, columns)
		for _, test := range []struct {
			c    sched.Collective
			spec string
			want model.Cost
		}{
			{sched.Bcast, "linear", model.Cost{Startups: p - 1, Words: (p - 1) * n}},
			{sched.Bcast, "binomial", model.Cost{Startups: lg, Words: lg * n}},
			{sched.Bcast, "mesh", model.Cost{Startups: lg, Words: lg * n}},
			{sched.Bcast, "scatter-allgather", model.Cost{Startups: 2 * lg, Words: 2 * part}},
			{sched.Bcast, "scatter-allgather,allgather=ring", model.Cost{Startups: lg + p - 1, Words: 2 * part}},
			{sched.Reduce, "binomial", model.Cost{Startups: lg, Words: lg * n, Combines: lg * n}},
			{sched.Reduce, "tree", model.Cost{Startups: lg, Words: lg * n, Combines: lg * n}},
			{sched.Reduce, "reduce-scatter-gather", model.Cost{Startups: 2 * lg, Words: 2 * part, Combines: part}},
			{sched.Scatter, "binomial", model.Cost{Startups: lg, Words: part}},
			{sched.Gather, "binomial", model.Cost{Startups: lg, Words: part}},
			{sched.AllGather, "ring", model.Cost{Startups: p - 1, Words: part}},
			{sched.AllGather, "recursive-doubling", model.Cost{Startups: lg, Words: part}},
			{sched.ReduceScatter, "recursive-halving", model.Cost{Startups: lg, Words: part, Combines: part}},
			{sched.ReduceScatter, "recursive-doubling", model.Cost{Startups: lg, Words: (lg-1)*n + n/p, Combines: (lg-1)*n + n/p}},
			{sched.ReduceScatter, "ring", model.Cost{Startups: p - 1, Words: part, Combines: part}},
			{sched.ReduceScatter, "mesh,dims=" + square, model.Cost{Startups: rows + columns - 2, Words: part, Combines: part}},
			{sched.AllGather, "mesh,dims=" + square, model.Cost{Startups: rows + columns - 2, Words: part}},
			{sched.AllGather, "bruck", model.Cost{Startups: lg, Words: part}},
			{sched.AllGather, "neighbor-exchange", model.Cost{Startups: p / 2, Words: part}},
			{sched.Scatter, "mesh", model.Cost{Startups: lg, Words: part}},
			{sched.Gather, "mesh", model.Cost{Startups: lg, Words: part}},
			{sched.AllToAll, "pairwise", model.Cost{Startups: p - 1, Words: part}},
			{sched.AllToAll, "ring", model.Cost{Startups: p - 1, Words: (p - 1) * n / 2}},
			{sched.AllToAll, "mesh,dims=" + square, model.Cost{Startups: rows + columns - 2, Words: (rows + columns - 2) * n / 2}},
			{sched.AllToAll, "hypercube", model.Cost{Startups: lg, Words: lg * n / 2}},
			{sched.AllToAll, "bruck", model.Cost{Startups: lg, Words: lg * n / 2}},
			{sched.AllToAll, "ecube", model.Cost{Startups: p - 1, Words: part}},
			{sched.AllReduce, "recursive-doubling", model.Cost{Startups: lg, Words: lg * n, Combines: lg * n}},
			{sched.AllReduce, "butterfly", model.Cost{Startups: lg, Words: lg * n, Combines: lg * n}},
			{sched.AllReduce, "recursive-halving", model.Cost{Startups: 2 * lg, Words: 2 * part, Combines: part}},
			{sched.Barrier, "butterfly", model.Cost{Startups: lg}},
			{sched.Barrier, "dissemination", model.Cost{Startups: lg}},
		} {
			got, err := algo.Price(test.c, test.spec, 1<<d, 0, 0, n)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("%v %s, p %v: %+v, want %+v", test.c, test.spec, p, got, test.want)
			}
		}
	}
}
