package command

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// asSimulated returns the real call whose times are those of a simulation, in nanoseconds, but
// that a step takes so many times as long.
func asSimulated(r *sim.Result, slow int, times float64) realCall {
	call := make(realCall, r.Ranks)
	late := func(at float64) int64 {
		if begin := r.PerStep[slow].Start; at > begin {
			return int64(at + (times-1)*(min(at, r.PerStep[slow].End)-begin))
		}
		return int64(at)
	}
	for rank := range call {
		call[rank] = trace.FileCall{P: r.Ranks, Rank: rank, End: late(r.Time)}
	}
	for _, m := range r.Log {
		for rank, step := range map[int]int{m.From: m.SendStep, m.To: m.RecvStep} {
			c := &call[rank]
			for len(c.Steps) <= step {
				c.Steps = append(c.Steps, 0)
			}
			c.Steps[step] = max(c.Steps[step], late(m.End))
		}
	}
	return call
}

func TestAComparisonFindsTheStepThatIsSlow(t *testing.T) {
	for _, algorithm := range []string{"ring", "recursive-doubling"} {
		s, err := algo.New(sched.AllReduce, algorithm, 8, 0, 8<<10)
		if err != nil {
			t.Fatal(err)
		}
		e, err := parseScenario("allreduce", "-n", "8", "-m", "1024", "--algorithm", algorithm)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.simulate(true)
		if err != nil {
			t.Fatal(err)
		}
		kind := realKind{"allreduce", s.Algorithm, 8, 0, 1024}
		same := newComparison(kind, []realCall{asSimulated(r, 0, 1)}, r)
		if same.Parts != 0 || math.Abs(same.Rest.Real) > 1e-3 {
			t.Errorf("%s: %+v: want a real run like the simulation not to part from it", algorithm, same)
		}
		const slow = 1
		c := newComparison(kind, []realCall{asSimulated(r, slow, 5)}, r)
		if c.Widest != slow+1 || c.Steps[slow].differs() < partsBy {
			t.Errorf("%s: differs most in step %d: want step %d, which takes five times as long: %+v", algorithm, c.Widest, slow+1, c.Steps)
		}
		if p := same.picture(e.title, r); len(p.Ranks) != 8 || marked(p) != 0 {
			t.Errorf("%s: the picture of a real run like the simulation has %d marks on %d ranks", algorithm, marked(p), len(p.Ranks))
		}
		p := c.picture(e.title, r)
		if !p.Steps[slow].Parts || marked(p) == 0 {
			t.Errorf("%s: the picture does not mark step %d", algorithm, slow+1)
		}
		for rank, spans := range p.Ranks {
			if n := len(spans); n == 0 || spans[n-1].SimulatedEnd != 1 || math.Abs(spans[n-1].RealEnd-1) > 1e-3 {
				t.Errorf("%s: rank %d has the spans %+v, which do not end with the whole", algorithm, rank, spans)
			}
			for _, s := range spans {
				if s.Step == slow && !s.Parts {
					t.Errorf("%s: the picture does not mark step %d of rank %d", algorithm, slow+1, rank)
				}
			}
		}
		sum := c.Rest.Real
		for _, step := range c.Steps {
			sum += step.Real
		}
		if math.Abs(sum-1) > 1e-3 {
			t.Errorf("%s: the real shares add up to %v, want 1", algorithm, sum)
		}
		var out bytes.Buffer
		if err := c.print(&out, e.title); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > lineWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// marked counts what a picture marks.
func marked(p draw.Comparison) (n int) {
	for _, s := range p.Steps {
		if s.Parts {
			n++
		}
	}
	for _, spans := range p.Ranks {
		for _, s := range spans {
			if s.Parts {
				n++
			}
		}
	}
	return n
}

func TestACallThatARankLacksIsNotCompared(t *testing.T) {
	f := &trace.File{Calls: []trace.FileCall{
		{Collective: "bcast", P: 2, Rank: 0, Number: 1}, {Collective: "bcast", P: 2, Rank: 1, Number: 1},
		{Collective: "bcast", P: 2, Rank: 0, Number: 2}, {Collective: "bcast", P: 2, Rank: 1, Number: 3},
		{Collective: "bcast", P: 1, Rank: 0, Number: 4, Failed: true}, {Collective: "gather", P: 1, Number: 5, Uneven: true},
	}}
	kinds := realCalls(f)
	if calls := kinds[realKind{collective: "bcast", p: 2}]; len(kinds) != 1 || len(calls) != 1 || calls[0][1].Number != 1 {
		t.Errorf("%+v: want the one call that both ranks have recorded", kinds)
	}
}
