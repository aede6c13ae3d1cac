package command

import (
	"fmt"

	"github.com/chorale-go/chorale/internal/trace"
)

// A realKind is calls of a timeline that one simulation stands for.
type realKind struct {
	collective, algorithm string
	p, root, words        int
}

// String returns what selects the kind on the command line.
func (k realKind) String() string {
	return fmt.Sprintf("%s -n %d --algorithm %s -m %d", k.collective, k.p, k.algorithm, k.words)
}

// A realCall is a call of a timeline, with all of its ranks in their order. The time in it
// counts from when the last of them came.
type realCall []trace.FileCall

func (c realCall) begin() (ns int64) {
	for _, rank := range c {
		ns = max(ns, rank.Start)
	}
	return ns
}

func (c realCall) time() (ns int64) {
	for _, rank := range c {
		ns = max(ns, rank.End)
	}
	return ns - c.begin()
}

// realCalls returns the complete calls of each kind. Those that have failed, and those whose
// parts differ in length, are not compared.
func realCalls(f *trace.File) map[realKind][]realCall {
	type key struct {
		kind         realKind
		communicator uint64
		number       uint32
		first        int
	}
	ranks := map[key]map[int]trace.FileCall{}
	var order []key
	for _, c := range f.Calls {
		if c.Failed || c.Uneven {
			continue
		}
		kind := realKind{c.Collective, c.Algorithm, c.P, c.Root, (c.Count*c.Size + wordBytes - 1) / wordBytes}
		k := key{kind, c.Communicator, c.Number, c.First}
		if ranks[k] == nil {
			ranks[k] = map[int]trace.FileCall{}
			order = append(order, k)
		}
		ranks[k][c.Rank] = c
	}
	kinds := map[realKind][]realCall{}
	for _, k := range order {
		if len(ranks[k]) != k.kind.p {
			continue
		}
		call := make(realCall, k.kind.p)
		for rank, c := range ranks[k] {
			call[rank] = c
		}
		kinds[k.kind] = append(kinds[k.kind], call)
	}
	return kinds
}
