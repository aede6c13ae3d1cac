package algo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A Definition is an algorithm of the caller's own: the fields of a row of the catalog,
// and the functions behind it. The values of a parameter are those that its Values names:
// "a number", "bytes, as in 8K", "sizes, as in 4x4", or words with | between them. Each
// parameter has a default.
type Definition struct {
	Algorithm
	// Cost evaluates the formula for n words of the whole vector. If it is nil, the
	// algorithm has no price, and [Cheapest] leaves it out.
	Cost func(c Call, n float64) model.Cost
	// Build returns what makes the programs of a call. It is given only calls that
	// Restrictions allow, with a value for every parameter.
	Build func(c Call) Programs
}

// Programs makes the programs of one schedule. Program adds the steps of a rank to a
// builder; they follow from the rank and the call alone. Several goroutines may call it at
// the same time.
type Programs struct {
	Blocks, Scratch int // see sched.Schedule
	Program         func(b *sched.Builder, rank int)
}

// A Call is what an algorithm is asked for.
type Call struct{ call call }

// Ranks returns the number of ranks.
func (c Call) Ranks() int { return c.call.p }

// Root returns the root, or the distance of a shift.
func (c Call) Root() int { return c.call.root }

// Bytes returns the size of the whole vector, or 0 if it is unknown.
func (c Call) Bytes() int { return c.call.bytes }

// Number returns the value of a parameter that is a number or bytes.
func (c Call) Number(key string) int { return c.call.number(key) }

// Word returns the value of a parameter as text.
func (c Call) Word(key string) string { return c.call.word(key) }

// Sizes returns the value of a parameter that is sizes, as in 4x4.
func (c Call) Sizes(key string) []int { return c.call.sizes(key) }

// ErrNoFormula is the error of [Price] for an algorithm that has none: one from a file, or
// one that was registered without.
var ErrNoFormula = errors.New("no formula of the cost is known")

var (
	registering sync.Mutex
	registered  atomic.Pointer[[]*Algorithm] // the catalog with what was registered; nil if that is nothing
)

// rows returns the catalog.
func rows() []*Algorithm {
	if all := registered.Load(); all != nil {
		return *all
	}
	return catalog
}

var properName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Register adds an algorithm to the catalog of this process, after the others of its
// collective. From then on it is as good as those: calls name it, [Catalog] lists it, and
// its schedules are checked, simulated and drawn. Every rank of a job registers the same
// ones, normally in main before it joins the job. Several goroutines may register and make
// schedules at the same time. It is an error if the definition lacks something or its name
// is taken.
func Register(d Definition) error {
	if err := d.validate(); err != nil {
		return fmt.Errorf("algo: registering %v %q: %w", d.Collective, d.Name, err)
	}
	a := d.Algorithm
	a.Params = slices.Clone(d.Params)
	for i := range a.Params {
		p := &a.Params[i]
		if p.parse = parserOf(p.Values); p.parse != nil {
			p.variants = func(int) []string { return nil }
		}
	}
	if d.Cost != nil {
		a.cost = func(c call, n float64) model.Cost { return d.Cost(Call{c}, n) }
	}
	a.build = func(c call) generator {
		p := d.Build(Call{c})
		return generator{blocks: p.Blocks, scratch: p.Scratch, program: p.Program}
	}
	registering.Lock()
	defer registering.Unlock()
	if find(a.Collective, a.Name) != nil {
		return fmt.Errorf("algo: registering %v %q: the catalog has one of this name", a.Collective, a.Name)
	}
	all := slices.Clone(rows())
	last := len(all)
	for i, other := range all {
		if other.Collective == a.Collective {
			last = i + 1
		}
	}
	all = slices.Insert(all, last, &a)
	registered.Store(&all)
	return nil
}

func (d *Definition) validate() error {
	switch {
	case !slices.Contains(sched.Collectives(), d.Collective):
		return errors.New("no such collective")
	case !properName.MatchString(d.Name) || d.Name == "all" || d.Name == "best":
		return errors.New("want a name of lower-case letters, digits and hyphens, other than all and best")
	case d.Build == nil:
		return errors.New("no Build: want a function that makes the programs")
	}
	for i, p := range d.Params {
		p.parse = parserOf(p.Values)
		switch _, err := p.read(p.Default); {
		case !properName.MatchString(p.Key) || slices.ContainsFunc(d.Params[:i], func(q Param) bool { return q.Key == p.Key }):
			return fmt.Errorf("parameter %q: want a key of its own, of lower-case letters, digits and hyphens", p.Key)
		case err != nil:
			return fmt.Errorf("parameter %s with default %q: %w", p.Key, p.Default, err)
		}
	}
	return nil
}

// parserOf returns the parser of the values that a text names; nil for words.
func parserOf(values string) func(string) (value, error) {
	switch values {
	case "a number":
		return parseNumber
	case "bytes, as in 8K":
		return parseBytes
	case "sizes, as in 4x4":
		return parseSizes
	}
	return nil
}
