package stall

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/chorale-go/chorale/transport"
)

// A Rank is what the process of a rank finds there.
type Rank struct {
	Waits      []Wait  `json:"waits,omitempty"`      // calls that wait for other ranks
	MoreWaits  int     `json:"moreWaits,omitempty"`  // that are not listed
	Moves      bool    `json:"moves,omitempty"`      // some call makes progress
	Calls      []Call  `json:"calls,omitempty"`      // calls that do not wait
	Goroutines []Stack `json:"goroutines,omitempty"` // of the program, in no call
	More       int     `json:"more,omitempty"`       // goroutines that are not listed
}

// A Wait is a [transport.Stall], and where the program has made the call.
type Wait struct {
	Context  uint32 `json:"context"`
	Sequence uint32 `json:"sequence,omitempty"`
	Text     string `json:"text,omitempty"` // Signature.Call
	Step     int    `json:"step,omitempty"`
	Message  string `json:"message,omitempty"` // what is done with a tagged message: send, recv or probe
	Tag      int    `json:"tag,omitempty"`
	Number   uint64 `json:"number,omitempty"` // Stall.Wait
	Peers    []int  `json:"peers,omitempty"`
	Call
}

// A Call is a function of the library that the program has called.
type Call struct {
	Name string `json:"name,omitempty"` // as in AllReduce; "" if it is not known
	At   string `json:"at,omitempty"`   // as in train.go:88; "" if it is not known
}

// A Stack is that of a goroutine.
type Stack struct {
	State  string  `json:"state"`
	Frames []Frame `json:"frames"`
}

// A Frame is a function in a stack.
type Frame struct {
	Function string `json:"function"`
	At       string `json:"at"`
}

// The bounds of a Rank.
const (
	waitsMax  = 8
	peersMax  = 32
	callsMax  = 4
	stacksLen = 4   // stacks of a rank
	framesMax = 8   // of a stack
	textMax   = 200 // bytes
)

// lookTime is the time between two looks at an endpoint. What waits at both makes no
// progress.
const lookTime = 100 * time.Millisecond

// Look returns what the ranks of these endpoints, which are all of this process, do. It
// takes lookTime. If the process has several ranks, owner says whose goroutine has a stack,
// or a negative number if it does not know; it is called with each frame.
func Look(endpoints []transport.Endpoint, owner func(function string, first uintptr) int) []Rank {
	before := make([][]transport.Stall, len(endpoints))
	for i, e := range endpoints {
		before[i] = e.Stalls()
	}
	time.Sleep(lookTime)
	now := make([][]transport.Stall, len(endpoints))
	for i, e := range endpoints {
		now[i] = e.Stalls()
	}
	return look(before, now, goroutines(), owner)
}

// look joins what waits at the endpoints with the stacks.
func look(before, now [][]transport.Stall, all []goroutine, owner func(function string, first uintptr) int) []Rank {
	byID := make(map[int]*goroutine)
	for i := range all {
		byID[all[i].id] = &all[i]
	}
	ranks := make([]Rank, len(now))
	waits := make(map[*goroutine]bool)
	for rank, stalls := range now {
		r := &ranks[rank]
		for _, s := range stalls {
			if !slices.ContainsFunc(before[rank], func(b transport.Stall) bool { return same(b, s) }) {
				r.Moves = true
				continue
			}
			w := newWait(s)
			if i := slices.IndexFunc(all, func(g goroutine) bool { return s.Operation != 0 && g.shows(s.Operation) }); i >= 0 {
				w.Call = callOf(&all[i], byID, waits)
			}
			if len(r.Waits) == waitsMax {
				r.MoreWaits++
			} else {
				r.Waits = append(r.Waits, w)
			}
		}
	}
	for i := range all {
		g := &all[i]
		rank := rankOf(g, byID, owner)
		if waits[g] || !g.isPrograms() || rank < 0 || rank >= len(ranks) {
			continue
		}
		ranks[rank].add(g)
	}
	return ranks
}

// same reports whether two looks have found the same wait.
func same(a, b transport.Stall) bool {
	a.Peers, b.Peers, a.Operation, b.Operation, a.Where, b.Where = nil, nil, 0, 0, "", ""
	return reflect.DeepEqual(a, b)
}

func newWait(s transport.Stall) Wait {
	return Wait{
		Context: s.Signature.Context, Sequence: s.Signature.Sequence, Text: cut(s.Signature.Call),
		Step: s.Step, Message: cut(s.Message), Tag: s.Tag, Number: s.Wait, Peers: s.Peers[:min(len(s.Peers), peersMax)],
	}
}

// stall returns the wait as the transport has said it.
func (w *Wait) stall() transport.Stall {
	return transport.Stall{
		Signature: transport.Signature{Context: w.Context, Sequence: w.Sequence, Call: w.Text},
		Step:      w.Step, Message: w.Message, Where: w.At, Tag: w.Tag, Wait: w.Number, Peers: w.Peers,
	}
}

// callOf returns the call in which a goroutine waits. If the goroutine is one of the
// library's, it is the call of the goroutine that has created it, which waits for it. It
// notes these goroutines.
func callOf(g *goroutine, byID map[int]*goroutine, waits map[*goroutine]bool) (c Call) {
	for range 3 {
		waits[g] = true
		if name, at := g.call(); name == "" || at != "" {
			return Call{cut(name), cut(at)}
		}
		if g = byID[g.parent]; g == nil {
			break
		}
	}
	return c
}

// rankOf returns the rank that a goroutine belongs to: the one that has created it, or its
// creator, and so on; −1 if it is not known.
func rankOf(g *goroutine, byID map[int]*goroutine, owner func(function string, first uintptr) int) int {
	if owner == nil {
		return 0
	}
	for range 16 {
		for i := range g.frames {
			if rank := owner(g.frames[i].function, g.frames[i].first); rank >= 0 {
				return rank
			}
		}
		if g = byID[g.parent]; g == nil {
			break
		}
	}
	return -1
}

// add adds a goroutine of the program that does not wait for other ranks.
func (r *Rank) add(g *goroutine) {
	name, at := g.call()
	switch {
	case slices.ContainsFunc(g.frames, func(f frame) bool { return f.pkg() == module+"/internal/stall" }):
	case slices.Contains(frameNames, name) && slices.ContainsFunc(g.frames, func(f frame) bool { return f.kind() == programs }):
		// It waits for the end of the job.
	case name != "":
		if len(r.Calls) < callsMax {
			r.Calls = append(r.Calls, Call{cut(name), cut(at)})
		}
	case len(r.Goroutines) == stacksLen:
		r.More++
	default:
		r.Goroutines = append(r.Goroutines, newStack(g))
	}
}

// frameNames are the functions that run ranks.
var frameNames = []string{"Main", "Run"}

// newStack returns a stack without the functions of Go and of the library.
func newStack(g *goroutine) Stack {
	s := Stack{State: cut(g.state)}
	for i := range g.frames {
		f := &g.frames[i]
		if len(s.Frames) < framesMax && (f.kind() == programs || f.kind() == librarys && f.pkg() == module && unicode.IsUpper(rune(f.name()[0]))) {
			s.Frames = append(s.Frames, Frame{cut(f.function), cut(f.at)})
		}
	}
	return s
}

// cut returns a text within its bound, without what a terminal could take for a command.
func cut(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), textMax)], "")
	return strings.Map(func(c rune) rune {
		if !unicode.IsGraphic(c) {
			return ' '
		}
		return c
	}, s)
}

// Bound puts what another process has said within the bounds of a Rank.
func (r *Rank) Bound() {
	r.Waits, r.Calls = r.Waits[:min(len(r.Waits), waitsMax)], r.Calls[:min(len(r.Calls), callsMax)]
	r.Goroutines = r.Goroutines[:min(len(r.Goroutines), stacksLen)]
	for i := range r.Waits {
		w := &r.Waits[i]
		w.Text, w.Message, w.Name, w.At = cut(w.Text), cut(w.Message), cut(w.Name), cut(w.At)
		w.Peers = w.Peers[:min(len(w.Peers), peersMax)]
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		c.Name, c.At = cut(c.Name), cut(c.At)
	}
	for i := range r.Goroutines {
		s := &r.Goroutines[i]
		s.State, s.Frames = cut(s.State), s.Frames[:min(len(s.Frames), framesMax)]
		for k := range s.Frames {
			f := &s.Frames[k]
			f.Function, f.At = cut(f.Function), cut(f.At)
		}
	}
}
