package algo_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// This is a second checker, as simple as can be. It runs the programs of all
// ranks against each other, message by message, on lists of rank numbers, and
// shares nothing with sched.Check: not even the meaning of the collectives.

// A term is a block of memory: the ranks whose block number block was combined
// into it, in operand order, and how. A nil term was never written.
type term struct {
	block int
	ranks []int
	made  string // the expression, as in "(0·1)·2"
}

// A naiveRank is one rank in the middle of its program.
type naiveRank struct {
	heard    []bool // of which ranks' arrival it has heard
	memory   map[sched.Buffer]map[int]*term
	program  sched.Program
	outgoing []parcel // of the current step, not yet taken
	incoming []parcel // of the current step, in the order of its receives
}

// A parcel is a message on its way, as one end sees it.
type parcel struct {
	peer  int
	terms []*term
	heard []bool
	come  bool
}

// checkNaively runs s, and reports an error unless it does what its collective
// promises. When several messages could be delivered, pick chooses.
func checkNaively(s *sched.Schedule, pick func(n int) int) error {
	ranks, err := runNaively(s, pick)
	if err != nil {
		return err
	}
	return promised(s, ranks)
}

// runNaively runs s to its end.
func runNaively(s *sched.Schedule, pick func(n int) int) ([]*naiveRank, error) {
	ranks := make([]*naiveRank, s.P)
	for r := range ranks {
		ranks[r] = newNaiveRank(s, r)
		if err := ranks[r].begin(s); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	for {
		ready := deliverable(ranks)
		if len(ready) == 0 {
			break
		}
		m := ready[pick(len(ready))]
		from, to := ranks[m[0]], ranks[m[1]]
		out, in := first(from.outgoing, m[1]), first(to.incoming, m[0])
		in.terms, in.heard, in.come, out.come = out.terms, out.heard, true, true
		for _, r := range m {
			if err := ranks[r].finishStep(s); err != nil {
				return nil, fmt.Errorf("rank %d: %w", r, err)
			}
		}
	}
	for r, rank := range ranks {
		if len(rank.program) > 0 {
			return nil, fmt.Errorf("rank %d is stuck with %d steps to go", r, len(rank.program))
		}
	}
	return ranks, nil
}

func newNaiveRank(s *sched.Schedule, r int) *naiveRank {
	n := &naiveRank{
		heard:   make([]bool, s.P),
		memory:  map[sched.Buffer]map[int]*term{sched.In: {}, sched.Out: {}, sched.Scratch: {}},
		program: s.Program(r),
	}
	n.heard[r] = true
	for b := range s.Blocks {
		var has bool
		switch s.Collective {
		case sched.Bcast, sched.Scatter:
			has = r == s.Root
		case sched.Gather, sched.AllGather:
			has = b/(s.Blocks/s.P) == r
		default:
			has = true
		}
		if has {
			n.memory[sched.In][b] = &term{b, []int{r}, fmt.Sprint(r)}
		}
	}
	return n
}

// begin enters the current step: it does the copies and reads what is sent.
func (n *naiveRank) begin(s *sched.Schedule) error {
	if len(n.program) == 0 {
		return nil
	}
	step := n.program[0]
	for _, c := range step.Copies {
		for i := range c.Blocks.Hi - c.Blocks.Lo {
			if err := n.write(s, c.Dst, c.At+i, n.memory[c.Src][c.Blocks.Lo+i], c.How); err != nil {
				return err
			}
		}
	}
	n.outgoing, n.incoming = nil, nil
	for _, send := range step.Sends {
		for _, to := range send.To {
			p := parcel{peer: to, heard: slices.Clone(n.heard)}
			for b := send.Blocks.Lo; b < send.Blocks.Hi; b++ {
				p.terms = append(p.terms, n.memory[send.Src][b])
				if writes(step.Recvs, send.Src, b) {
					return fmt.Errorf("block %d of %v is sent and written", b, send.Src)
				}
			}
			n.outgoing = append(n.outgoing, p)
		}
	}
	for _, r := range step.Recvs {
		n.incoming = append(n.incoming, parcel{peer: r.From})
	}
	return n.finishStep(s)
}

func writes(recvs []sched.Recv, to sched.Buffer, block int) bool {
	return slices.ContainsFunc(recvs, func(r sched.Recv) bool {
		return r.Dst == to && r.Blocks.Lo <= block && block < r.Blocks.Hi
	})
}

// finishStep lands what has come and enters the next step, if all has.
func (n *naiveRank) finishStep(s *sched.Schedule) error {
	waits := func(p parcel) bool { return !p.come }
	if len(n.program) == 0 || slices.ContainsFunc(n.outgoing, waits) || slices.ContainsFunc(n.incoming, waits) {
		return nil
	}
	for i, r := range n.program[0].Recvs {
		terms := n.incoming[i].terms
		for other, heard := range n.incoming[i].heard {
			n.heard[other] = n.heard[other] || heard
		}
		if len(terms) != r.Blocks.Hi-r.Blocks.Lo {
			return fmt.Errorf("%d blocks come from %d where %d are awaited", len(terms), r.From, r.Blocks.Hi-r.Blocks.Lo)
		}
		for k, t := range terms {
			if err := n.write(s, r.Dst, r.Blocks.Lo+k, t, r.How); err != nil {
				return err
			}
		}
	}
	n.program = n.program[1:]
	return n.begin(s)
}

func (n *naiveRank) write(s *sched.Schedule, to sched.Buffer, block int, t *term, how sched.Combine) error {
	held := n.memory[to][block]
	switch {
	case t == nil:
		return fmt.Errorf("block %d of %v is written from nothing", block, to)
	case to == sched.In || block < 0 || to == sched.Out && block >= s.Blocks || to == sched.Scratch && block >= s.Scratch:
		return fmt.Errorf("block %d of %v is not there to be written", block, to)
	case how != sched.Replace && (held == nil || held.block != t.block):
		return fmt.Errorf("block %d of %v does not hold what could be combined", block, to)
	}
	switch how {
	case sched.Left:
		t = join(s, t, held)
	case sched.Right:
		t = join(s, held, t)
	}
	n.memory[to][block] = t
	return nil
}

// join combines two terms. Operands of an operator that commutes are named in
// order: it yields the same bits either way.
func join(s *sched.Schedule, a, b *term) *term {
	t := &term{block: a.block, ranks: slices.Concat(a.ranks, b.ranks)}
	if s.Commutative {
		slices.Sort(t.ranks)
		if b.made < a.made {
			a, b = b, a
		}
	}
	t.made = "(" + a.made + "·" + b.made + ")"
	return t
}

// first returns the first parcel to or from a peer that has not come.
func first(parcels []parcel, peer int) *parcel {
	for i := range parcels {
		if parcels[i].peer == peer && !parcels[i].come {
			return &parcels[i]
		}
	}
	return nil
}

// deliverable lists the messages whose two ends are in the steps that send and
// receive them.
func deliverable(ranks []*naiveRank) (pairs [][2]int) {
	for from, rank := range ranks {
		if len(rank.program) == 0 {
			continue
		}
		for _, p := range rank.outgoing {
			to := ranks[p.peer]
			if !p.come && len(to.program) > 0 && first(to.incoming, from) != nil {
				pairs = append(pairs, [2]int{from, p.peer})
			}
		}
	}
	return pairs
}

// promised compares every Out with what the collective's name says.
func promised(s *sched.Schedule, ranks []*naiveRank) error {
	all := make([]int, s.P)
	for r := range all {
		all[r] = r
	}
	made := make(map[[2]int]string) // by block and number of ranks
	for r, rank := range ranks {
		if s.Collective == sched.Barrier && slices.Contains(rank.heard, false) {
			return fmt.Errorf("rank %d leaves when it has not heard of all: %v", r, rank.heard)
		}
		for b := range s.Blocks {
			perPart := max(1, s.Blocks/s.P)
			owner, block := b/perPart, b
			var want []int
			switch s.Collective {
			case sched.Bcast:
				want = []int{s.Root}
			case sched.Scatter:
				if owner == r {
					want = []int{s.Root}
				}
			case sched.Gather:
				if r == s.Root {
					want = []int{owner}
				}
			case sched.AllGather:
				want = []int{owner}
			case sched.Reduce:
				if r == s.Root {
					want = all
				}
			case sched.ReduceScatter:
				if owner == r {
					want = all
				}
			case sched.AllReduce:
				want = all
			case sched.Scan:
				want = all[:r+1]
			case sched.ExScan:
				if r > 0 {
					want = all[:r]
				}
			case sched.AllToAll:
				want, block = []int{owner}, r*perPart+b%perPart
			case sched.Shift:
				want = []int{(r - s.Root + s.P) % s.P}
			}
			got := rank.memory[sched.Out][b]
			switch {
			case want == nil && got == nil:
				continue
			case want == nil:
				return fmt.Errorf("rank %d has a block %d of out, and should not", r, b)
			case got == nil || got.block != block || !slices.Equal(got.ranks, want):
				return fmt.Errorf("rank %d, block %d of out: got %v, want block %d of %v", r, b, got, block, want)
			}
			if key := [2]int{b, len(want)}; s.Collective.Combines() {
				if made[key] != "" && made[key] != got.made {
					return fmt.Errorf("rank %d, block %d of out: made as %s, elsewhere as %s", r, b, got.made, made[key])
				}
				made[key] = got.made
			}
		}
	}
	return nil
}

// orders are ways to choose among messages that could be delivered.
var orders = map[string]func(n int) int{
	"first":  func(n int) int { return 0 },
	"last":   func(n int) int { return n - 1 },
	"middle": func(n int) int { return n / 2 },
}

// The exchanges among them show that it does not matter which side comes first,
// with no message buffered.
//
// CLAIM B4
func TestTheNaiveCheckerFindsNothingWhateverIsDeliveredFirst(t *testing.T) {
	everySchedule(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17}, func(t *testing.T, s *sched.Schedule) {
		for name, pick := range orders {
			if err := checkNaively(s, pick); err != nil {
				t.Errorf("%s, %s message first: %v", describe(s), name, err)
			}
		}
	})
}
