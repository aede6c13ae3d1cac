package command

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/chorale-go/chorale/sim"
)

// A comparison lays a simulation beside real calls. Its shares are of the whole time, from 0
// to 1.
type comparison struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	P          int     `json:"p"`
	Root       int     `json:"root"`
	M          int     `json:"m"`
	Line       string  `json:"line"`      // of the program
	Calls      int     `json:"calls"`     // that are in the timeline
	Compared   int     `json:"compared"`  // of them, the faster half
	Real       float64 `json:"real"`      // seconds of one, the mean, from when the last rank came
	Simulated  float64 `json:"simulated"` // in the unit of ts, or over a transport of the profile in µs
	Transport  string  `json:"transport,omitempty"`

	Steps  []comparedStep `json:"steps"`
	Rest   comparedShare  `json:"rest"`   // after the last message
	Parts  int            `json:"parts"`  // the first step whose shares differ by a twentieth, from 1; 0 if none does
	Widest int            `json:"widest"` // the first step whose shares differ most, from 1; 0 if there are no steps
	Late   []comparedLate `json:"late"`
	Notes  []string       `json:"notes"`

	typical realCall // the median of those that are compared
}

type comparedShare struct {
	Simulated float64 `json:"simulated"`
	Real      float64 `json:"real"`
}

func (s comparedShare) differs() float64 { return s.Real - s.Simulated }

// A comparedStep is a step of the timeline: from when the one before it is done on all ranks
// until it is.
type comparedStep struct {
	Step     int `json:"step"`
	Messages int `json:"messages"`
	Words    int `json:"words"`
	comparedShare
	Last int `json:"last"` // the rank that was the last to be done, most often
}

// A comparedLate is a rank that often came last.
type comparedLate struct {
	Rank  int     `json:"rank"`  // in its communicator
	Share float64 `json:"share"` // of the calls to which it came last, from 0 to 1
	By    float64 `json:"by"`    // seconds after the first, the mean of these calls
}

func (l comparedLate) String() string {
	return fmt.Sprintf("rank %d came last to %.0f%% of the calls, %s after the first", l.Rank, 100*l.Share, secondsText(l.By))
}

// partsBy is the difference between a real and a simulated share from which they part.
const partsBy = 0.05

// newComparison compares real calls with their simulation, which was recorded.
func newComparison(kind realKind, calls []realCall, r *sim.Result) *comparison {
	c := &comparison{
		Collective: kind.collective, Algorithm: kind.algorithm, P: kind.p, Root: kind.root, M: kind.words,
		Line: calls[0][0].Line, Calls: len(calls), Simulated: r.Time, Late: lateRanks(calls), Steps: []comparedStep{},
	}
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b realCall) int { return cmp.Compare(a.time(), b.time()) })
	calls = calls[:(len(calls)+1)/2]
	c.Compared, c.typical = len(calls), calls[len(calls)/2]

	steps := make([]float64, len(r.PerStep))
	lasts := make([]map[int]int, len(r.PerStep))
	whole, rest := 0.0, 0.0
	for _, call := range calls {
		done := call.begin()
		for i, end := range stepEnds(call, r) {
			if end.rank >= 0 {
				if lasts[i] == nil {
					lasts[i] = map[int]int{}
				}
				lasts[i][end.rank]++
			}
			steps[i] += float64(max(0, end.ns-done))
			done = max(done, end.ns)
		}
		whole += float64(call.time())
		rest += float64(call.begin() + call.time() - done)
	}
	share := func(x, of float64) float64 {
		if of <= 0 {
			return 0
		}
		return x / of
	}
	c.Real = whole / float64(len(calls)) / 1e9
	done := 0.0
	for i, s := range r.PerStep {
		shares := comparedShare{share(max(0, s.End-done), r.Time), share(steps[i], whole)}
		done = max(done, s.End)
		last, most := -1, 0
		for rank, n := range lasts[i] {
			if n > most || n == most && rank < last {
				last, most = rank, n
			}
		}
		c.Steps = append(c.Steps, comparedStep{i + 1, s.Messages, s.Words, shares, last})
		d := math.Abs(shares.differs())
		if c.Parts == 0 && d >= partsBy {
			c.Parts = i + 1
		}
		if c.Widest == 0 || d > math.Abs(c.Steps[c.Widest-1].differs()) {
			c.Widest = i + 1
		}
	}
	c.Rest = comparedShare{share(max(0, r.Time-done), r.Time), share(rest, whole)}
	return c
}

// A stepEnd is when a step of the timeline is done in a real call, and on which rank last.
type stepEnd struct {
	ns   int64
	rank int
}

// stepEnds returns the ends of the steps of the simulation in a real call: when the last of
// their messages was received.
func stepEnds(call realCall, r *sim.Result) []stepEnd {
	ends := make([]stepEnd, len(r.PerStep))
	for i := range ends {
		ends[i].rank = -1
	}
	for _, m := range r.Log {
		if at := call[m.To].Steps; m.RecvStep < len(at) && at[m.RecvStep] > ends[m.Step].ns {
			ends[m.Step] = stepEnd{at[m.RecvStep], m.To}
		}
	}
	return ends
}

// lateRanks returns the ranks that came last to a tenth of the calls or more, the most
// frequent first, if others waited for them for a tenth of the time.
func lateRanks(calls []realCall) []comparedLate {
	late := map[int]*comparedLate{}
	waited, spent := 0.0, 0.0
	for _, call := range calls {
		last, first := 0, int64(math.MaxInt64)
		for rank, c := range call {
			first = min(first, c.Start)
			if c.Start > call[last].Start {
				last = rank
			}
		}
		if late[last] == nil {
			late[last] = &comparedLate{Rank: last}
		}
		by := float64(call.begin() - first)
		late[last].Share++
		late[last].By += by / 1e9
		waited, spent = waited+by, spent+by+float64(call.time())
	}
	all := []comparedLate{}
	for _, l := range late {
		l.By /= l.Share
		if l.Share /= float64(len(calls)); l.Share >= 0.1 && waited >= 0.1*spent {
			all = append(all, *l)
		}
	}
	slices.SortFunc(all, func(a, b comparedLate) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Rank, b.Rank))
	})
	return all
}
