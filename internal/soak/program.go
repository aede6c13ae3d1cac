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
	slots   []int // of the two hosts, if the kind is mixed or namespaces
	respawn int   // how many ranks are started anew
	phases  int
}

// kinds are the transports: those of goroutines and those of processes. The ranks of mixed are
// on two hosts in name alone; those of namespaces have two network namespaces, of which the
// second can be lost.
var kinds = []string{"inproc", "goroutines over shm", "goroutines over tcp", "shm", "tcp", "mixed", "namespaces"}

const goroutineKinds = 3 // come first

// newProgram draws a program. If kind is "", any of kinds, of which deadly ones are processes of
// this host.
func newProgram(seed, number uint64, deadly bool, kind string) *program {
	p := &program{seed: seed, number: number, deadly: deadly}
	r := p.random()
	if p.kind = kinds[r.IntN(len(kinds))]; deadly {
		p.kind = kinds[goroutineKinds+r.IntN(len(kinds)-goroutineKinds-1)]
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
	if p.kind == "mixed" || p.kind == "namespaces" {
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
// the order of the steps. Some ranks are killed meanwhile, or while the others shrink or grow.
type phase struct {
	number  int
	members []int
	groups  []derivation
	steps   []step
	victims []victim
	host    *hostLoss // nil if the second host is not lost
	grows   bool      // takes in processes that were started anew, in the end
	growing []victim  // are killed meanwhile
}

type victim struct {
	rank  int
	when  moment
	after time.Duration // of that moment; 0 and of no importance if the rank is lost with its host
}

// A moment is when a victim begins to wait for its end.
type moment string

const (
	atBeginning moment = "the beginning"
	atLoss      moment = "the first loss" // when the others shrink
	atGrow      moment = "the beginning of grow"
	withHost    moment = "that of its host"
)

// A hostLoss is the loss of the second host.
type hostLoss struct {
	by    int           // the rank that cuts it off: the lowest of the first host that is not killed
	cable bool          // no packet comes any more; else all processes of the host are killed
	after time.Duration // of the beginning
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
	p.drawLosses(r, ph)
	ranks := [][]int{members}
	add := func(d derivation) {
		ph.groups = append(ph.groups, d)
		ranks = append(ranks, d.groups...)
	}
	if len(ph.victims) > 0 { // one communicator that does not notice, at least
		colors := make([]int, len(members))
		for i, rank := range members {
			if ph.isDoomed(rank) {
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

// drawLosses draws who is lost.
func (p *program) drawLosses(r *rand.Rand, ph *phase) {
	if !p.processes() {
		return
	}
	left := ph.members // of which some may be killed
	if first, second := p.byHost(left); p.kind == "namespaces" && len(first) > 0 && len(second) > 0 && r.IntN(3) == 0 {
		for _, rank := range second {
			ph.victims = append(ph.victims, victim{rank: rank, when: withHost})
		}
		ph.host = &hostLoss{cable: r.IntN(2) == 0, after: upTo20ms(r)}
		left = first
	}
	n := 0
	switch {
	case ph.host != nil:
		n = min(r.IntN(2), len(left)-1)
	case len(left) <= 2:
	case p.deadly:
		n = min(1+r.IntN(3), len(left)-2)
	case r.IntN(2) == 0:
		n = min(1+r.IntN(2), len(left)-2)
	}
	killed := victims(r, left, n)
	ph.victims = append(ph.victims, killed...)
	left = slices.DeleteFunc(slices.Clone(left), ph.isDoomed)
	if ph.host != nil {
		ph.host.by = slices.Min(left)
	}
	if ph.grows = p.respawn > 0 && (len(ph.victims) > 0 || r.IntN(4) == 0); ph.grows && len(left) > 1 && r.IntN(2) == 0 {
		for _, at := range r.Perm(len(left))[:min(1+r.IntN(2), len(left)-1)] {
			ph.growing = append(ph.growing, victim{left[at], atGrow, time.Duration(10<<r.IntN(15)) * time.Microsecond}) // up to 160 ms
		}
	}
}

// byHost returns the ranks on each of two hosts.
func (p *program) byHost(ranks []int) (first, second []int) {
	for _, rank := range ranks {
		if len(p.slots) > 0 && rank >= p.slots[0] {
			second = append(second, rank)
		} else {
			first = append(first, rank)
		}
	}
	return first, second
}

// victims draws n of some ranks that are killed.
func victims(r *rand.Rand, ranks []int, n int) (victims []victim) {
	same := r.IntN(3) == 0
	for i, at := range r.Perm(len(ranks))[:n] {
		v := victim{rank: ranks[at], when: atBeginning}
		if i > 0 && r.IntN(2) == 0 {
			v.when = atLoss
		}
		v.after = upTo20ms(r)
		if i > 0 && same {
			v.when, v.after = atBeginning, victims[0].after
		}
		victims = append(victims, v)
	}
	return victims
}

func upTo20ms(r *rand.Rand) time.Duration { return time.Duration(10<<r.IntN(12)) * time.Microsecond }

// stillborn draws whether the processes are killed that are started in the place of a rank, and
// how long after their start: while they wait for the others to grow, or join them, or later.
func (p *program) stillborn(rank int) (after time.Duration, stillborn bool) {
	r := p.random(-3, rank)
	return time.Millisecond << r.IntN(9), p.respawn > 0 && r.IntN(4) == 0
}

// doomed reports whether one of some ranks is killed in the phase.
func (ph *phase) doomed(ranks []int) bool {
	return slices.ContainsFunc(ph.victims, func(v victim) bool { return slices.Contains(ranks, v.rank) })
}

func (ph *phase) isDoomed(rank int) bool { return ph.doomed([]int{rank}) }

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
	for rank := range members {
		if after, stillborn := p.stillborn(rank); stillborn {
			fmt.Fprintf(w, "a process in the place of rank %d is killed %v after its start\n", rank, after)
		}
	}
	for i := range p.phases {
		ph := p.phase(i, members)
		fmt.Fprintf(w, "phase %d of ranks %v\n", i, members)
		if h := ph.host; h != nil {
			how := "all of its processes are killed"
			if h.cable {
				how = "its cable is pulled out"
			}
			fmt.Fprintf(w, "  the second host is lost %v after the beginning: %s, by rank %d\n", h.after, how, h.by)
		}
		for _, v := range slices.Concat(ph.victims, ph.growing) {
			fmt.Fprintf(w, "  rank %d is killed %v after %s\n", v.rank, v.after, v.when)
		}
		for _, d := range ph.groups {
			fmt.Fprintf(w, "  %s of communicator %d: %v\n", d.how, d.from, d.groups)
		}
		for j, s := range ph.steps {
			fmt.Fprintf(w, "  step %d: %v\n", j, s)
		}
		if ph.grows {
			fmt.Fprintln(w, "  grow")
		}
		ph.victims = append(ph.victims, ph.growing...)
		members = slices.DeleteFunc(slices.Clone(members), ph.isDoomed)
	}
	return w.String()
}
