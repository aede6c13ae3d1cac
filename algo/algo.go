package algo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// An Algorithm is one row of the catalog. Its exported fields describe it; make
// schedules with [New].
type Algorithm struct {
	Collective   sched.Collective
	Name         string
	Params       []Param
	Restrictions Restrictions
	Formula      string // the cost, as text; see the package comment for its letters
	Prefer       string // when to prefer it, in one line

	// cost evaluates the formula for n words.
	cost func(c call, n float64) model.Cost
	// build makes the generator of a call that has passed all checks.
	build func(c call) generator
}

// A call is the arguments of [New], with a value for every parameter.
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

// A generator makes the programs of one schedule: program adds the steps of one
// rank to a builder.
type generator struct {
	blocks, scratch int
	program         func(b *sched.Builder, rank int)
}

// New makes the schedule of a collective among p ranks. The spec is the name of
// an algorithm and, if any, parameters: "binomial", "binomial,order=ascending",
// "mesh,dims=4x4". The root is 0 for collectives that have none, and the distance
// of a shift. Bytes is the size of the whole vector, by which some parameters are
// chosen; 0 if it is unknown.
//
// A spec for which [IsFile] holds is the file of a schedule, which has to be for this
// collective, number of ranks and root, and is checked.
//
// New makes no program: the schedule makes the program of a rank when it is asked
// for it, and may be asked by several goroutines at once. An error is one line
// that says what was asked, what is wrong, and what would be right.
func New(c sched.Collective, spec string, p, root, bytes int) (*sched.Schedule, error) {
	if IsFile(spec) {
		return fromFile(c, spec, p, root)
	}
	a, call, canonical, err := resolve(c, spec, p, root, bytes)
	if err != nil {
		return nil, err
	}
	g := a.build(call)
	r := a.restrictions(call)
	s := &sched.Schedule{
		Collective:  c,
		Algorithm:   canonical,
		P:           p,
		Root:        root,
		Blocks:      g.blocks,
		Scratch:     g.scratch,
		Commutative: r.Commutative,
		Make:        g.make(p),
	}
	s.EqualBlocks = r.EqualBlocks
	s.Uneven = s.Partitioned() && !r.EqualParts && !s.EqualBlocks
	return s, nil
}

// make returns the Make function of a schedule of p ranks. Any other rank has an
// empty program.
func (g generator) make(p int) func(b *sched.Builder, rank int) sched.Program {
	return func(b *sched.Builder, rank int) sched.Program {
		if rank < 0 || rank >= p {
			return nil
		}
		g.program(b, rank)
		return b.Program()
	}
}

// Price evaluates an algorithm's cost formula for a vector of the given number of
// words. The other arguments and the errors are those of [New], and [ErrNoFormula]. All
// roots cost the same; the cost of a shift depends on its distance.
func Price(c sched.Collective, spec string, p, root, bytes int, words float64) (model.Cost, error) {
	if IsFile(spec) {
		return model.Cost{}, fmt.Errorf("algo: %s: %w", spec, ErrNoFormula)
	}
	a, call, _, err := resolve(c, spec, p, root, bytes)
	if err == nil && a.cost == nil {
		err = fmt.Errorf("algo: %v %q: %w", c, spec, ErrNoFormula)
	}
	if err != nil {
		return model.Cost{}, err
	}
	return a.cost(call, words), nil
}

// Validate returns an error if no number of ranks takes a spec: its algorithm, a parameter
// or a value is unknown, or its file has no schedule of the collective that is right.
func Validate(c sched.Collective, spec string) error {
	if IsFile(spec) {
		s, err := ReadFile(spec)
		if err == nil && s.Collective != c {
			err = fmt.Errorf("algo: %s is for %v: want a file for %v", spec, s.Collective, c)
		}
		return err
	}
	params := strings.Split(spec, ",")
	a, err := Lookup(c, params[0])
	if err != nil {
		return err
	}
	given, err := a.split(params[1:])
	for i := range a.Params {
		if text, ok := given[a.Params[i].Key]; ok && err == nil {
			if _, err = a.Params[i].read(text); err != nil {
				err = fmt.Errorf("%s=%s: %w", a.Params[i].Key, text, err)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("algo: %v %q: %w", c, spec, err)
	}
	return nil
}

// resolve finds the algorithm that spec names, and gives every parameter a value.
// The canonical spec is the name and the parameters that differ from their
// defaults, in the order of the catalog.
func resolve(c sched.Collective, spec string, p, root, bytes int) (*Algorithm, call, string, error) {
	k := call{p: p, root: root, bytes: bytes, values: make(map[string]value)}
	a, canonical, err := k.resolve(c, spec)
	var unknown *sched.UnknownError
	switch {
	case errors.As(err, &unknown):
		return nil, k, "", fmt.Errorf("algo: %v: %w", c, err)
	case err != nil:
		return nil, k, "", fmt.Errorf("algo: %v %q on %d ranks: %w", c, spec, p, err)
	}
	return a, k, canonical, nil
}

func (k *call) resolve(c sched.Collective, spec string) (*Algorithm, string, error) {
	params := strings.Split(spec, ",")
	name := params[0]
	a := find(c, name)
	if a == nil {
		return nil, "", unknown(c, name)
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
