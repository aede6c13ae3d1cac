// Package algo holds the algorithms: for each collective, the ways to do it
// that the literature knows.
//
// [New] makes a schedule from an algorithm's name and parameters, [Catalog] lists
// what there is, and [Cheapest] chooses by cost. Each algorithm has a file of its
// own, which says what the idea is, what it costs, when to prefer it, and where
// it comes from. Costs are written in α, the start-up time of a message, β, the
// time per word, and γ, the time per word combined; n is the words of the whole
// vector, p the number of ranks, and lg the logarithm to base 2. They assume one
// port: a rank sends one message and receives one at a time. Only what is
// restricted to all ports assumes that a rank uses all its links at once.
//
// A rank's program is made from its number, p, the root and the parameters
// alone, in time and memory that follow from its own steps.
package algo

import (
	"fmt"
	"strings"
	"sync"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// An Algorithm is one row of the catalogue.
type Algorithm struct {
	Collective   sched.Collective
	Name         string
	Params       []Param
	Restrictions Restrictions
	Formula      string // the cost, for people; see the package comment for its letters
	Prefer       string // when it is the right one, in a line

	// cost counts what the formula says, for n words.
	cost func(c call, n float64) model.Cost
	// build makes the plan of a call that has passed all checks.
	build func(c call) plan
}

// A call is what is asked of an algorithm, with its parameters settled.
type call struct {
	p, root int
	bytes   int // the size of the whole vector; 0 if unknown
	values  map[string]value
}

// number returns the value of a parameter that counts something.
func (c call) number(key string) int { return c.values[key].number }

// word returns the value of a parameter that is one of several words.
func (c call) word(key string) string { return c.values[key].text }

// sizes returns the value of a parameter that is a list like 4x4.
func (c call) sizes(key string) []int { return c.values[key].sizes }

// A plan is what an algorithm makes of a call: the numbers of the schedule, and
// how one rank's program goes.
type plan struct {
	blocks, scratch int
	program         func(b *sched.Builder, rank int)
}

// New makes the schedule of a collective among p ranks. The spec is the name of
// an algorithm, with parameters if need be: "binomial",
// "binomial,order=ascending", "mesh,dims=4x4". The root is 0 for collectives
// that have none, and the distance of a shift. Bytes is the size of the whole
// vector, by which some parameters are chosen; 0 if it is unknown.
//
// New itself does little, whatever p is: programs are made when the schedule is
// asked for them. Its errors are one line: what was asked, what is wrong with
// it, and what would be right.
func New(c sched.Collective, spec string, p, root, bytes int) (*sched.Schedule, error) {
	a, call, canonical, err := settle(c, spec, p, root, bytes)
	if err != nil {
		return nil, err
	}
	plan := a.build(call)
	s := &sched.Schedule{
		Collective:  c,
		Algorithm:   canonical,
		P:           p,
		Root:        root,
		Blocks:      plan.blocks,
		Scratch:     plan.scratch,
		Commutative: a.Restrictions.Commutative,
		Make:        plan.make(p),
	}
	s.EqualBlocks = a.Restrictions.EqualBlocks
	s.Uneven = s.Partitioned() && !a.Restrictions.EqualParts && !s.EqualBlocks
	return s, nil
}

// builders are at rest between programs. A builder that is used again spares
// the next program the growing of its lists.
var builders = sync.Pool{New: func() any { return new(sched.Builder) }}

// make returns the Make of a schedule of p ranks. A rank that is not among them
// has an empty program.
func (pl plan) make(p int) func(rank int) sched.Program {
	return func(rank int) sched.Program {
		if rank < 0 || rank >= p {
			return nil
		}
		b := builders.Get().(*sched.Builder)
		defer builders.Put(b)
		pl.program(b, rank)
		return b.Program()
	}
}

// Price returns what the catalogue says that an algorithm costs, for a vector
// of so many words. The other arguments are those of [New]. Any root costs the
// same, but a shift costs by its distance.
func Price(c sched.Collective, spec string, p, root, bytes int, words float64) (model.Cost, error) {
	a, call, _, err := settle(c, spec, p, root, bytes)
	if err != nil {
		return model.Cost{}, err
	}
	return a.cost(call, words), nil
}

// settle finds the algorithm that spec names, gives all its parameters values,
// and returns the spec's canonical form: the name, and the parameters that
// differ from their defaults, in the order of the catalogue.
func settle(c sched.Collective, spec string, p, root, bytes int) (*Algorithm, call, string, error) {
	k := call{p: p, root: root, bytes: bytes, values: make(map[string]value)}
	a, canonical, err := k.settle(c, spec)
	if err != nil {
		return nil, k, "", fmt.Errorf("algo: %v %q on %d ranks: %w", c, spec, p, err)
	}
	return a, k, canonical, nil
}

func (k *call) settle(c sched.Collective, spec string) (*Algorithm, string, error) {
	params := strings.Split(spec, ",")
	name := params[0]
	a := find(c, name)
	if a == nil {
		return nil, "", fmt.Errorf("no algorithm %q: want %s", name, names(c))
	}
	if err := k.ranks(c); err != nil {
		return nil, "", err
	}
	if err := a.Restrictions.Allow(k.p); err != nil {
		return nil, "", fmt.Errorf("%s %w", name, err)
	}
	given, err := a.split(params[1:])
	if err != nil {
		return nil, "", err
	}
	canonical := name
	for i := range a.Params {
		differs, err := k.set(&a.Params[i], given)
		if err != nil {
			return nil, "", err
		}
		if differs {
			canonical += "," + a.Params[i].Key + "=" + k.values[a.Params[i].Key].text
		}
	}
	return a, canonical, nil
}

// ranks checks the numbers that every algorithm is given.
func (k *call) ranks(c sched.Collective) error {
	switch {
	case k.p < 1:
		return fmt.Errorf("want at least 1 rank")
	case k.bytes < 0:
		return fmt.Errorf("%d bytes: want 0 or more", k.bytes)
	case !c.Rooted() && c != sched.Shift && k.root != 0:
		return fmt.Errorf("root %d: %v has no root, want 0", k.root, c)
	case k.root < 0 || k.root >= k.p:
		return fmt.Errorf("root %d: want 0 to %d", k.root, k.p-1)
	}
	return nil
}
