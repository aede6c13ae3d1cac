package sched_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A right schedule is broken at random. Whenever that changes what comes out,
// Check must say so.
func TestCheckCatchesEveryBreakThatChangesTheOutcome(t *testing.T) {
	broken, kinds := 0, make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(algo.Catalog()).Draw(t, "algorithm")
		p := rapid.IntRange(2, 9).Draw(t, "p")
		root := 0
		if a.Collective.Rooted() {
			root = rapid.IntRange(0, p-1).Draw(t, "root")
		}
		s, err := algo.New(a.Collective, a.Name, p, root, 0)
		if err != nil {
			t.Skip("not for this p:", err)
		}
		if err := naive(s); err != nil {
			t.Fatalf("naive does not believe in %v: %v", s, err)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("%v\n%v", err, s)
		}
		kind, mutant := mutate(t, s)
		if mutant == nil {
			return
		}
		verdict, checked := naive(mutant), mutant.Check()
		if verdict != nil && checked == nil {
			t.Fatalf("Check finds nothing after %s, but %v:\n%v", kind, verdict, mutant)
		}
		if verdict != nil {
			broken++
			kinds[kind]++
		}
	})
	if broken == 0 {
		t.Error("no break changed the outcome: the test shows nothing")
	}
	t.Logf("%d breaks changed the outcome: %v", broken, kinds)
}

// mutate breaks one thing in a copy of s. It returns nil if there was nothing
// of the drawn kind to break.
func mutate(t *rapid.T, s *sched.Schedule) (string, *sched.Schedule) {
	programs := make([]sched.Program, s.P)
	for rank := range programs {
		programs[rank] = clone(s.Program(rank))
	}
	kind := rapid.SampledFrom([]string{
		"drop a send", "drop a receive", "drop a copy", "drop a message", "duplicate a message",
		"redirect a send", "redirect a receive", "swap two receives", "swap two steps",
		"resize a send", "resize a message", "move a receive", "move a send", "swap the side", "replace instead",
		"read another buffer", "write another buffer",
	}).Draw(t, "kind")
	rank := rapid.IntRange(0, s.P-1).Draw(t, "rank")
	program := programs[rank]
	if len(program) == 0 {
		return kind, nil
	}
	at := rapid.IntRange(0, len(program)-1).Draw(t, "step")
	if !breakStep(t, kind, s, program, at) {
		return kind, nil
	}
	mutant := *s
	mutant.Make = func(_ *sched.Builder, rank int) sched.Program { return programs[rank] }
	if kind == "drop a message" || kind == "duplicate a message" || kind == "resize a message" {
		if !breakMessage(kind, programs, program[at].Sends, rank, at) {
			return kind, nil
		}
	}
	return kind, &mutant
}

func breakStep(t *rapid.T, kind string, s *sched.Schedule, program sched.Program, at int) bool {
	step := &program[at]
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
	switch kind {
	case "drop a copy":
		if len(step.Copies) == 0 {
			return false
		}
		i := pick(len(step.Copies))
		step.Copies = slices.Delete(step.Copies, i, i+1)
		return true
	case "swap two steps":
		other := pick(len(program))
		program[at], program[other] = program[other], program[at]
		return other != at
	case "swap two receives":
		if len(step.Recvs) < 2 {
			return false
		}
		step.Recvs[0], step.Recvs[1] = step.Recvs[1], step.Recvs[0]
		return true
	case "drop a send", "redirect a send", "resize a send", "move a send", "read another buffer",
		"drop a message", "duplicate a message", "resize a message":
		if len(step.Sends) == 0 {
			return false
		}
		breakSend(kind, step, pick(len(step.Sends)), pick(s.P))
		return true
	}
	if len(step.Recvs) == 0 {
		return false
	}
	breakRecv(kind, step, pick(len(step.Recvs)), pick(s.P))
	return true
}

func breakSend(kind string, step *sched.Step, i, rank int) {
	send := &step.Sends[i]
	switch kind {
	case "drop a send":
		step.Sends = slices.Delete(step.Sends, i, i+1)
	case "redirect a send":
		send.To[0] = rank
	case "resize a send":
		send.Blocks.Hi++
	case "move a send":
		send.Blocks.Lo++
		send.Blocks.Hi++
	case "read another buffer":
		send.Src = (send.Src + 1 + sched.Buffer(rank%2)) % 3
	}
}

func breakRecv(kind string, step *sched.Step, i, rank int) {
	r := &step.Recvs[i]
	switch kind {
	case "drop a receive":
		step.Recvs = slices.Delete(step.Recvs, i, i+1)
	case "redirect a receive":
		r.From = rank
	case "move a receive":
		r.Blocks.Lo++
		r.Blocks.Hi++
	case "swap the side":
		r.How = map[sched.Combine]sched.Combine{sched.Left: sched.Right, sched.Right: sched.Left}[r.How]
	case "replace instead":
		r.How = sched.Replace
	case "write another buffer":
		r.Dst = 3 - r.Dst // out ↔ scratch
	}
}

// breakMessage breaks both ends of the first message of a step's first send, so
// that the ends still fit each other.
func breakMessage(kind string, programs []sched.Program, sends []sched.Send, rank, at int) bool {
	to := sends[0].To[0]
	nth := 0
	for _, step := range programs[rank][:at] {
		for _, send := range step.Sends {
			if slices.Contains(send.To, to) {
				nth++
			}
		}
	}
	for j, step := range programs[to] {
		for k, r := range step.Recvs {
			if r.From != rank {
				continue
			}
			if nth > 0 {
				nth--
				continue
			}
			switch kind {
			case "drop a message":
				programs[to][j].Recvs = slices.Delete(step.Recvs, k, k+1)
				sends[0].To = slices.Delete(sends[0].To, 0, 1)
				if len(sends[0].To) == 0 {
					programs[rank][at].Sends = slices.Delete(sends, 0, 1)
				}
			case "duplicate a message":
				programs[to][j].Recvs = slices.Insert(step.Recvs, k, r)
				programs[rank][at].Sends = append(sends, sched.Send{To: []int{to}, Src: sends[0].Src, Blocks: sends[0].Blocks})
			case "resize a message":
				if r.Blocks.Len() < 2 || len(sends[0].To) > 1 {
					return false
				}
				programs[to][j].Recvs[k].Blocks.Hi--
				sends[0].Blocks.Hi--
			}
			return true
		}
	}
	return false
}

func clone(p sched.Program) sched.Program {
	p = slices.Clone(p)
	for i := range p {
		p[i].Copies = slices.Clone(p[i].Copies)
		p[i].Recvs = slices.Clone(p[i].Recvs)
		p[i].Sends = slices.Clone(p[i].Sends)
		for k := range p[i].Sends {
			p[i].Sends[k].To = slices.Clone(p[i].Sends[k].To)
		}
	}
	return p
}
