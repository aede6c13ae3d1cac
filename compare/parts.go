package main

import (
	"flag"
	"slices"
	"strings"
)

// A part of the comparison is calls of one kind, with the ranks, sizes and transports that
// they are measured with. Each part has tables of its own.
type part struct {
	name       string
	ops        []string // as chorale bench names them
	ranks      []int
	sizes      []int    // bytes of one rank's message
	transports []string // ours, and shm-alloc: shm with buffers from Alloc
}

// The names of the parts.
const (
	collectives = "collectives"
	messages    = "messages"
	forms       = "forms"
)

// allParts returns what is compared unless flags say otherwise. Messages and forms are
// measured where every rank of two has a processor. A form stands beside others of its kind
// in which a library can do something else than in the plain call.
func allParts() []part {
	return []part{
		{collectives, strings.Split("bcast,reduce,scatter,gather,allgather,reduce-scatter,allreduce,alltoall,barrier", ","),
			[]int{2, 4, 8}, []int{8, 1 << 10, 64 << 10, 1 << 20, 4 << 20}, []string{"inproc", "shm", "shm-alloc", "tcp"}},
		{messages, strings.Split("pingpong,exchange,rate,halo", ","),
			[]int{2}, []int{8, 1 << 10, 64 << 10, 1 << 20}, []string{"inproc", "shm", "tcp"}},
		{forms, strings.Split("bcast:nonblocking,allreduce:nonblocking,alltoall:nonblocking,barrier:nonblocking,"+
			"bcast:overlap,allreduce:overlap,alltoall:overlap,"+
			"bcast:prepared,allreduce:prepared,alltoall:prepared,"+
			"scatter:uneven,gather:uneven,allgather:uneven,reduce-scatter:uneven,alltoall:uneven,"+
			"allreduce:half,alltoall:half,split,"+
			"allreduce:func,allreduce:slices,reduce-scatter:slices,"+
			"exchange:columns,scatter:columns,gather:columns", ","),
			[]int{2}, []int{8, 64 << 10, 1 << 20}, []string{"inproc", "shm"}},
	}
}

// partOf returns the name of the part that a call belongs to.
func partOf(op string) string {
	switch {
	case strings.Contains(op, ":") || op == "split":
		return forms
	case slices.Contains(allParts()[1].ops, op):
		return messages
	}
	return collectives
}

// chooseParts returns the parts with a list of calls, or of names of parts; all if it is
// empty.
func chooseParts(list string) []part {
	all := allParts()
	if list == "" {
		return all
	}
	chosen := allParts()
	for i := range chosen {
		chosen[i].ops = nil
	}
	for word := range strings.SplitSeq(list, ",") {
		name, ops := partOf(word), []string{word}
		if i := slices.IndexFunc(all, func(p part) bool { return p.name == word }); i >= 0 {
			name, ops = word, all[i].ops
		}
		i := slices.IndexFunc(chosen, func(p part) bool { return p.name == name })
		chosen[i].ops = append(chosen[i].ops, ops...)
	}
	return slices.DeleteFunc(chosen, func(p part) bool { return p.ops == nil })
}

// named returns the flags of a command line.
func named(flags *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// A group is a set of cells that all sides measure one right after another.
type group struct {
	part  string
	ranks int
	root  string
	ops   []string
	sizes []int
}

// groups returns the groups of a run.
func (s settings) groups() (all []group) {
	for _, p := range s.parts {
		for _, ranks := range p.ranks {
			for _, root := range []string{rotatingRoot, fixedRoot} {
				ops := p.ops
				if root == fixedRoot {
					ops = intersect(ops, rooted)
				}
				for some := range slices.Chunk(ops, s.groupSize) {
					all = append(all, group{p.name, ranks, root, some, p.sizes})
				}
			}
		}
	}
	return all
}

// transports returns our transports in a part.
func (s settings) transports(name string) []string {
	for _, p := range s.parts {
		if p.name == name {
			return p.transports
		}
	}
	return nil
}
