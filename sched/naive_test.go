package sched_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// naive carries a schedule out as plainly as can be: every block is a list of
// operands as text, and ranks are looked at again and again until nothing moves
// any more. It says what is wrong in the end, or nil. The real checker must
// find fault with whatever naive finds fault with.
func naive(s *sched.Schedule) error {
	n := &naiveJob{s: s}
	for rank := range s.P {
		n.ranks = append(n.ranks, &naiveRank{
			program: s.Program(rank),
			out:     make([]string, s.Blocks),
			scratch: make([]string, s.Scratch),
			heard:   map[int]bool{rank: true},
		})
	}
	for moved := true; moved; {
		moved = false
		for rank := range n.ranks {
			moved = n.look(rank) || moved
		}
		if n.err != nil {
			return n.err
		}
	}
	return n.verdict()
}

type naiveJob struct {
	s     *sched.Schedule
	ranks []*naiveRank
	err   error
}

type naiveRank struct {
	program      sched.Program
	step         int
	copied       bool
	sent         map[[2]int]bool // send, destination
	received     map[int]bool
	out, scratch []string
	heard        map[int]bool
	saying       map[int]bool // what it had heard when the step began
}

// look does what a rank can do now.
func (n *naiveJob) look(rank int) bool {
	r := n.ranks[rank]
	if r.step == len(r.program) {
		return false
	}
	step := r.program[r.step]
	if !r.copied {
		r.copied, r.sent, r.received, r.saying = true, map[[2]int]bool{}, map[int]bool{}, map[int]bool{}
		for k := range r.heard {
			r.saying[k] = true
		}
		for _, c := range step.Copies {
			for i := range c.Blocks.Len() {
				n.write(rank, c.Dst, c.At+i, n.read(rank, c.Src, c.Blocks.Lo+i), c.How)
			}
		}
		return true
	}
	for i, send := range step.Sends {
		for k, to := range send.To {
			if !r.sent[[2]int{i, k}] && n.hand(rank, to, i, k) {
				return true
			}
		}
	}
	total := 0
	for _, send := range step.Sends {
		total += len(send.To)
	}
	if len(r.sent) == total && len(r.received) == len(step.Recvs) {
		r.step++
		r.copied = false
		return true
	}
	return false
}

// hand delivers one message if the receiver is ready for it.
func (n *naiveJob) hand(from, to, i, k int) bool {
	if to < 0 || to >= n.s.P {
		n.err = fmt.Errorf("no rank %d", to)
		return false
	}
	sender, receiver := n.ranks[from], n.ranks[to]
	step := sender.program[sender.step]
	for e, earlier := range step.Sends[:i+1] { // first come, first served
		for x, other := range earlier.To {
			if other == to && (e < i || x < k) && !sender.sent[[2]int{e, x}] {
				return false
			}
		}
	}
	if receiver.step == len(receiver.program) || !receiver.copied {
		return false
	}
	recvs := receiver.program[receiver.step].Recvs
	for j, r := range recvs {
		if receiver.received[j] || r.From != from {
			continue
		}
		for e, earlier := range recvs[:j] {
			if !receiver.received[e] && earlier.Dst == r.Dst && earlier.Blocks.Overlaps(r.Blocks) {
				return false
			}
		}
		send := step.Sends[i]
		if send.Blocks.Len() != r.Blocks.Len() {
			n.err = fmt.Errorf("%d blocks for %d", send.Blocks.Len(), r.Blocks.Len())
			return false
		}
		for b := range r.Blocks.Len() {
			n.write(to, r.Dst, r.Blocks.Lo+b, n.read(from, send.Src, send.Blocks.Lo+b), r.How)
		}
		for rank := range sender.saying {
			receiver.heard[rank] = true
		}
		sender.sent[[2]int{i, k}] = true
		receiver.received[j] = true
		return true
	}
	return false
}

func (n *naiveJob) read(rank int, b sched.Buffer, i int) string {
	r := n.ranks[rank]
	if b != sched.Scratch && !n.s.Extent(b, rank).Contains(sched.Range{Lo: i, Hi: i + 1}) {
		n.err = fmt.Errorf("rank %d has no block %d of %v", rank, i, b)
		return ""
	}
	v := ""
	switch {
	case b == sched.In:
		v = fmt.Sprintf("%d:%d", i, rank)
	case b == sched.Out && i < len(r.out):
		v = r.out[i]
	case b == sched.Scratch && i < len(r.scratch):
		v = r.scratch[i]
	}
	if v == "" {
		n.err = fmt.Errorf("rank %d reads nothing from %v %d", rank, b, i)
	}
	return v
}

func (n *naiveJob) write(rank int, b sched.Buffer, i int, v string, how sched.Combine) {
	r := n.ranks[rank]
	list := map[sched.Buffer][]string{sched.Out: r.out, sched.Scratch: r.scratch}[b]
	if i >= len(list) || b == sched.Out && !n.s.Extent(b, rank).Contains(sched.Range{Lo: i, Hi: i + 1}) {
		n.err = fmt.Errorf("rank %d cannot write %v %d", rank, b, i)
		return
	}
	if how != sched.Replace && list[i] == "" {
		n.err = fmt.Errorf("rank %d combines with nothing", rank)
	}
	switch how {
	case sched.Left:
		v = v + " " + list[i]
	case sched.Right:
		v = list[i] + " " + v
	}
	list[i] = v
}

// verdict compares what every rank holds with what it must hold.
func (n *naiveJob) verdict() error {
	for rank, r := range n.ranks {
		if r.step != len(r.program) {
			return fmt.Errorf("rank %d is stuck in step %d", rank, r.step)
		}
		if n.s.Collective == sched.Barrier && len(r.heard) != n.s.P {
			return fmt.Errorf("rank %d has heard of %d", rank, len(r.heard))
		}
		extent := n.s.Extent(sched.Out, rank)
		for b := extent.Lo; b < extent.Hi; b++ {
			got := strings.Fields(r.out[b])
			var want []string
			w := n.s.Expected(rank, b)
			for from := w.Lo; from < w.Hi; from++ {
				want = append(want, fmt.Sprintf("%d:%d", w.Block, from))
			}
			if n.s.Commutative {
				sort.Strings(got)
				sort.Strings(want)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("rank %d, block %d: %v, want %v", rank, b, got, want)
			}
		}
	}
	return nil
}
