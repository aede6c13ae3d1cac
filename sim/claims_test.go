package sim_test

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// The claims of the textbooks, simulated. The comment CLAIM above a test names
// those that it proves; docs/claims.md lists them all. Wherever a test has a
// formula it is the text's, worked out by hand, and not the catalog's.

// prices are what claims are tried with: all charges together, and each alone.
var prices = []model.Model{
	{Ts: 150, Tw: 0.3, Top: 0.07},
	{Ts: 10, Tw: 1},
	{Ts: 1}, {Tw: 1}, {Top: 1},
}

// A claim is what a schedule takes on networks, according to a text. Its m is
// the text's: the words of the whole vector, or of one rank's part.
type claim struct {
	c        sched.Collective
	spec     string
	networks string // one word for each
	allPort  bool
	takes    func(p, m float64) model.Cost
}

// largest returns the largest p of a claim for any power of two.
func largest() int {
	if testing.Short() {
		return 64
	}
	return 1024
}

// hold simulates claims for every power of two up to 1024, with several prices
// and m. No two messages may want the same link at a time.
func hold(t *testing.T, claims []claim) {
	t.Helper()
	for _, c := range claims {
		for p := 1; p <= largest(); p *= 2 {
			c.holds(t, p)
		}
	}
}

// many is from how many messages on a claim is tried with one m and price only.
const many = 1 << 15

func (c claim) holds(t *testing.T, p int) {
	t.Helper()
	s := schedule(t, c.c, c.spec, p, 0)
	for _, on := range strings.Fields(c.networks) {
		name := fmt.Sprintf("%v %s, p %d, on %s", c.c, c.spec, p, on)
		for i, price := range prices {
			words := wordsFor(s, []int{7, 1}[i%2])
			r := simulateOn(t, on, s, words, func(k *sim.Config) { k.Model, k.AllPort = price, c.allPort })
			takes(t, fmt.Sprintf("%s, m %d, %+v", name, words, price), r, c.takes(float64(p), float64(words)))
			if r.MaxLinkLoad > 1 {
				t.Errorf("%s: a link is asked to carry %d messages in a step", name, r.MaxLinkLoad)
			}
			if r.Messages > many {
				break
			}
		}
	}
}

// takes compares a simulated time with a cost at the same prices.
func takes(t *testing.T, what string, r *sim.Result, want model.Cost) {
	t.Helper()
	equal(t, what, r.Time, r.Config.Model.Time(want))
}

// equal compares times, but for rounding.
func equal(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: time %v, want %v", what, got, want)
	}
}

// schedule makes one, for a vector of algo.VariantBytes.
func schedule(t *testing.T, c sched.Collective, spec string, p, root int) *sched.Schedule {
	t.Helper()
	s, err := algo.New(c, spec, p, root, algo.VariantBytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// simulateOn simulates a schedule on a network.
func simulateOn(t *testing.T, on string, s *sched.Schedule, words int, change ...func(*sim.Config)) *sim.Result {
	t.Helper()
	return playAll(t, on, s.P, []sim.Part{{Schedule: s, Words: words}}, change...)
}

// playAll simulates several on p ranks. A mesh or torus without sizes is as
// square as can be.
func playAll(t *testing.T, on string, p int, parts []sim.Part, change ...func(*sim.Config)) *sim.Result {
	t.Helper()
	if on == "mesh" || on == "torus" {
		rows, columns := sides(p)
		on = fmt.Sprintf("%s:%dx%d", on, rows, columns)
	}
	network, err := topo.Parse(on, p)
	if err != nil {
		t.Fatal(err)
	}
	config := sim.Config{Topology: network, Model: prices[0]}
	for _, f := range change {
		f(&config)
	}
	r, err := sim.Run(config, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sides returns those of the mesh of p = 2^d ranks: √p and √p, or one twice the
// other.
func sides(p int) (rows, columns int) {
	rows = 1 << (floorLog(p) / 2)
	return rows, p / rows
}

// record asks for every message.
func record(c *sim.Config) { c.Record = true }

// said renders the messages of a result as the texts do, step by step.
func said(r *sim.Result) string {
	steps := make([][]sim.Message, len(r.PerStep))
	for _, m := range r.Log {
		steps[m.Step] = append(steps[m.Step], m)
	}
	return render(steps)
}

// reversed renders the same backwards, with all arrows turned round.
func reversed(r *sim.Result) string {
	steps := make([][]sim.Message, len(r.PerStep))
	for _, m := range r.Log {
		m.From, m.To = m.To, m.From
		at := len(steps) - 1 - m.Step
		steps[at] = append(steps[at], m)
	}
	return render(steps)
}

func render(steps [][]sim.Message) string {
	var lines []string
	for _, step := range steps {
		slices.SortStableFunc(step, func(a, b sim.Message) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
		})
		var words []string
		for _, m := range step {
			words = append(words, fmt.Sprintf("%d→%d", m.From, m.To))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "; ")
}

// congested renders the links that a step asks too much of.
func congested(r *sim.Result, step int) string {
	var words []string
	for _, l := range r.PerStep[step].Congested {
		words = append(words, fmt.Sprintf("%s %d", r.Name(l.Link), l.Messages))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// moved is the cost of so many messages one after another, of so many words.
func moved(messages, words float64) model.Cost {
	return model.Cost{Startups: messages, Words: messages * words}
}

// combined is the same where each word that comes is combined.
func combined(messages, words float64) model.Cost {
	return moved(messages, words).Plus(model.Cost{Combines: messages * words})
}

func lg(p float64) float64 { return math.Log2(p) }

func floorLog(p int) int { return bits.Len(uint(p)) - 1 }
func ceilLog(p int) int  { return bits.Len(uint(p - 1)) }
