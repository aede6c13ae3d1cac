package sim

import (
	"cmp"
	"slices"
)

// A workTable is the work of the processors of a [Machine]. Work is numbered: the sending
// parts of messages, as the messages are; behind these their receiving parts; then what
// ranks do before each step; and what each rank does after its last one.
type workTable struct {
	messages, steps int32
	all             []work
	lastOf          []int32 // per rank: the work with whose end the rank has ended, or noWork
}

// A work is one piece.
type work struct {
	rank         int32
	by           int32   // the work with whose end it could begin, or noWork
	requested    float64 // when it could, but for its processor
	took         float64 // beside a switch
	began, ended float64 // with the switch before it
}

// noWork stands for the beginning.
const noWork = -1

func newWorkTable(p *programTable) *workTable {
	messages, steps := len(p.messages), len(p.steps)-1
	n := 2*messages + steps + p.ranks
	return &workTable{
		messages: int32(messages), steps: int32(steps),
		all: makeList[work](n, n), lastOf: make([]int32, p.ranks),
	}
}

func (w *workTable) sending(message int32) int32   { return message }
func (w *workTable) receiving(message int32) int32 { return w.messages + message }
func (w *workTable) before(step int32) int32       { return 2*w.messages + step }
func (w *workTable) after(rank int32) int32        { return 2*w.messages + w.steps + rank }

// messageOf returns the message of which some work is a part, and whether it is the sending
// part. It returns false for work of another kind.
func (w *workTable) messageOf(i int32) (message int32, sends, ok bool) {
	switch {
	case i < w.messages:
		return i, true, true
	case i < 2*w.messages:
		return i - w.messages, false, true
	}
	return 0, false, false
}

// compare orders work that asks for a processor at the same time.
func (w *workTable) compare(i, j int32) int {
	return cmp.Or(cmp.Compare(w.all[i].rank, w.all[j].rank), cmp.Compare(i, j))
}

// A part is what of a message is on the critical path: its sending part, its receiving part,
// or both with the way between them.
type part struct {
	message    int32
	start, end float64
}

// path returns what the end of a rank waited for, the first part first. Each begins when the
// one before has ended, or what the rank of one of them does beside messages has.
func (w *workTable) path(rank int32) (path []part) {
	for i := w.lastOf[rank]; i != noWork; i = w.all[i].by {
		m, _, ok := w.messageOf(i)
		switch n := len(path); {
		case ok && n > 0 && path[n-1].message == m:
			path[n-1].start = w.all[i].began
		case ok:
			path = append(path, part{m, w.all[i].began, w.all[i].ended})
		}
	}
	slices.Reverse(path)
	for k := range len(path) - 1 { // a receiving part may begin before the sending part of its message ends
		path[k].end = min(path[k].end, path[k+1].start)
	}
	return path
}
