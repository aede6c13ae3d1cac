package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/oracle"
)

// A program is what the ranks of one job do. All of it follows from its seed and number, and
// from which ranks are left after each phase; when a rank dies within its phase is left to
// the clock. Ranks are numbered as in the job at its beginning.
type program struct {
	seed, number uint64
	deadly       bool // all phases kill, until two ranks are left

	kind    string // of kinds
	size    int
	slots   []int // of the hosts, if the kind is mixed
	respawn int   // how many ranks are started anew
	phases  int
}

// kinds are the transports: those of goroutines and those of processes.
var kinds = []string{"inproc", "goroutines over shm", "goroutines over tcp", "shm", "tcp", "mixed"}

const goroutineKinds = 3 // come first

// newProgram draws a program. If kind is "", any of kinds, of which deadly ones are processes.
func newProgram(seed, number uint64, deadly bool, kind string) *program {
	p := &program{seed: seed, number: number, deadly: deadly}
	r := p.random()
	if p.kind = kinds[r.IntN(len(kinds))]; deadly {
		p.kind = kinds[goroutineKinds+r.IntN(len(kinds)-goroutineKinds)]
	}
	p.kind = cmp.Or(kind, p.kind)
	p.size, p.phases = 3+r.IntN(6), 2+r.IntN(4)
	if !deadly && r.IntN(4) == 0 {
		p.size = 1 + r.IntN(3)
	}
	if !deadly && r.IntN(20) == 0 {
		p.phases = 50 // what grows with each phase shows
	}
	if !deadly && r.IntN(2) == 0 {
		p.respawn = 1 + r.IntN(4)
	}
	if p.kind == "mixed" {
		p.size = max(p.size, 2)
		first := 1 + r.IntN(p.size-1)
		p.slots = []int{first, p.size - first}
	}
	if deadly {
		p.phases = p.size // at least one of them is lost in each
	}
	return p
}

func (p *program) processes() bool { return slices.Index(kinds, p.kind) >= goroutineKinds }

// random returns the random numbers of a part of the program.
func (p *program) random(part ...int) *rand.Rand {
	low := p.number
	for _, i := range part {
		low = (low ^ low>>29 ^ uint64(i+1)) * 0x9e3779b97f4a7c15
	}
	return rand.New(rand.NewPCG(p.seed, low))
}

// A phase is what the ranks do that are left: they make communicators, and calls on them in
// the order of the steps. Some ranks are killed meanwhile, or while the others shrink.
type phase struct {
	number  int
	members []int
	groups  []derivation
	steps   []step
	victims []victim
}

type victim struct {
	rank  int
	late  bool // killed while the others shrink
	after time.Duration
}

// A derivation makes communicators of one that there is already.
type derivation struct {
	from   int     // an index of the communicators of the phase, of which 0 has all members
	how    string  // of derivations
	groups [][]int // the ranks of the communicators made, in their order
	colors []int   // of a split, by rank of its communicator
	keys   []int
	tag    int // of a group
}

var derivations = []string{"dup", "split", "split", "subset", "group"}

// A step is a call or a few on one communicator.
type step struct {
	group int
	what  string // of stepKinds
	ranks []int  // of the communicator
	draw  func() *rand.Rand
}

// stepKinds are what ranks do in a step. Collectives are the most frequent.
var stepKinds = []string{
	"collective", "collective", "collective", "collective", "collective", "collective",
	"overlap", "messages", "messages", "make", "prepared", "agree", "shrink", "deadline", "cancel", "revoke",
}

// phase draws a phase for the ranks that are left, in the order of their communicator.
func (p *program) phase(number int, members []int) *phase {
	r := p.random(number)
	ph := &phase{number: number, members: members}
	ph.victims = p.victims(r, members)
	ranks := [][]int{members}
	add := func(d derivation) {
		ph.groups = append(ph.groups, d)
		ranks = append(ranks, d.groups...)
	}
	if len(ph.victims) > 0 { // one communicator that does not notice, at least
		colors := make([]int, len(members))
		for i, rank := range members {
			if ph.doomed([]int{rank}) {
				colors[i] = 1
			}
		}
		add(split(0, members, colors, make([]int, len(members))))
	}
	for range r.IntN(4) {
		from := r.IntN(len(ranks))
		add(derive(r, from, ranks[from]))
	}
	for i := range 10 + r.IntN(40) {
		group := r.IntN(len(ranks))
		s := step{group: group, what: stepKinds[r.IntN(len(stepKinds))], ranks: ranks[group]}
		if (s.what == "cancel" || s.what == "revoke") && ph.doomed(s.ranks) {
			s.what = "collective" // else its errors would not tell what has failed
		}
		s.draw = func() *rand.Rand { return p.random(number, i) }
		ph.steps = append(ph.steps, s)
	}
	return ph
}

// victims draws who is killed.
func (p *program) victims(r *rand.Rand, members []int) (victims []victim) {
	n := 0
	switch {
	case !p.processes() || len(members) <= 2:
	case p.deadly:
		n = min(1+r.IntN(3), len(members)-2)
	case r.IntN(2) == 0:
		n = min(1+r.IntN(2), len(members)-2)
	}
	same := r.IntN(3) == 0
	for i, at := range r.Perm(len(members))[:n] {
		v := victim{rank: members[at], late: i > 0 && r.IntN(2) == 0}
		v.after = time.Duration(10<<r.IntN(12)) * time.Microsecond // up to 20 ms
		if i > 0 && same {
			v.late, v.after = false, victims[0].after
		}
		victims = append(victims, v)
	}
	return victims
}

// doomed reports whether one of some ranks is killed in the phase.
func (ph *phase) doomed(ranks []int) bool {
	return slices.ContainsFunc(ph.victims, func(v victim) bool { return slices.Contains(ranks, v.rank) })
}

func derive(r *rand.Rand, from int, ranks []int) derivation {
	d := derivation{from: from, how: derivations[r.IntN(len(derivations))]}
	switch d.how {
	case "dup":
		d.groups = [][]int{ranks}
	case "split":
		colors, keys := make([]int, len(ranks)), make([]int, len(ranks))
		for i := range ranks {
			colors[i], keys[i] = r.IntN(3), r.IntN(4)
		}
		return split(from, ranks, colors, keys)
	default:
		some := slices.Clone(ranks)
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		d.groups, d.tag = [][]int{some[:1+r.IntN(len(some))]}, r.IntN(1<<15)
	}
	return d
}

// split returns a split by colors, and by keys within a color.
func split(from int, ranks, colors, keys []int) derivation {
	d := derivation{from: from, how: "split", colors: colors, keys: keys}
	for color := range 3 {
		var group []int
		for i := range ranks {
			if colors[i] == color {
				group = append(group, i)
			}
		}
		slices.SortStableFunc(group, func(i, j int) int { return cmp.Compare(keys[i], keys[j]) })
		for k, i := range group {
			group[k] = ranks[i]
		}
		if len(group) > 0 {
			d.groups = append(d.groups, group)
		}
	}
	return d
}

// calls returns the collectives of a step.
func (s step) calls(r *rand.Rand) []oracle.Call {
	n := map[string]int{"collective": 1, "cancel": 1, "overlap": 2}[s.what]
	calls := make([]oracle.Call, n)
	for i := range calls {
		for calls[i] == nil || calls[i].ByHosts() {
			calls[i] = oracle.Draw(func(n int, _ string) int { return r.IntN(n) }, len(s.ranks))
		}
	}
	return calls
}

func (s step) String() string {
	text := fmt.Sprintf("%s on communicator %d of ranks %v", s.what, s.group, s.ranks)
	for _, call := range s.calls(s.draw()) {
		text += "; " + call.String()
	}
	return text
}

func (p *program) String() string {
	text := fmt.Sprintf("job %d of seed %d: %d ranks, %s", p.number, p.seed, p.size, p.kind)
	if p.slots != nil {
		text += fmt.Sprintf(" on hosts of %v", p.slots)
	}
	if p.respawn > 0 && p.processes() {
		text += fmt.Sprintf(", %d started anew", p.respawn)
	}
	return text
}

// text returns the whole program, as it is if ranks that were killed do not come again.
func (p *program) text() string {
	w := new(strings.Builder)
	fmt.Fprintln(w, p)
	members := make([]int, p.size)
	for i := range members {
		members[i] = i
	}
	for i := range p.phases {
		ph := p.phase(i, members)
		fmt.Fprintf(w, "phase %d of ranks %v\n", i, members)
		for _, v := range ph.victims {
			when := "the beginning"
			if v.late {
				when = "the first loss"
			}
			fmt.Fprintf(w, "  rank %d is killed %v after %s\n", v.rank, v.after, when)
		}
		for _, d := range ph.groups {
			fmt.Fprintf(w, "  %s of communicator %d: %v\n", d.how, d.from, d.groups)
		}
		for j, s := range ph.steps {
			fmt.Fprintf(w, "  step %d: %v\n", j, s)
		}
		members = slices.DeleteFunc(slices.Clone(members), func(rank int) bool { return ph.doomed([]int{rank}) })
	}
	return w.String()
}
