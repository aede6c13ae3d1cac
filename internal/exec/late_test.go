package exec_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/transport"
)

// A busy exchanger has the caller do something meanwhile, if it offers that, and only then
// delivers what it receives: bytes of its own.
type busy struct {
	refuses bool // does nothing meanwhile
	offered int
	check   func(before bool)
}

func (e *busy) Exchange(_ context.Context, step transport.Step) error {
	if step.Meanwhile != nil && !e.refuses {
		e.offered++
		e.check(true)
		step.Meanwhile()
		e.check(false)
	}
	for _, r := range step.Recvs {
		for i := range r.Into {
			r.Into[i] = 0xff
		}
	}
	return nil
}

const (
	scatter = `
schedule scatter late
ranks 2
blocks 2
rank 0
  step
    copy in 0..1 to out 0
    send in 1..2 to 1
`
	gather = `
schedule gather late
ranks 2
blocks 2
rank 0
  step
    copy in 0..1 to out 0
    recv out 1..2 from 1
`
	sendsTheCopy = `
schedule allgather chained
ranks 2
blocks 2
rank 0
  step
    copy in 0..1 to out 0
    send out 0..1 to 1
    recv out 1..2 from 1
`
	writesWhatInPlaceIsSent = `
schedule alltoall crossed
ranks 2
blocks 2
rank 0
  step
    copy in 0..1 to out 1
    send in 1..2 to 1
    recv out 0..1 from 1
`
	receivesOverTheCopy = `
schedule allgather replaced
ranks 2
blocks 2
rank 0
  step
    copy in 0..1 to out 1
    send in 0..1 to 1
    recv out 1..2 from 1
`
)

func TestCopiesAreMadeWhileMessagesAreUnderWay(t *testing.T) {
	const part = 16 << 10
	for _, c := range []struct {
		text string
		part int
		late bool
	}{
		{scatter, part, true},
		{gather, part, true},
		{scatter, part - 1, false}, // not worth it
		{sendsTheCopy, part, false},
		{writesWhatInPlaceIsSent, part, false},
		{receivesOverTheCopy, part, false},
	} {
		s := program(t, c.text)
		l := exec.NewLayout(s, c.part, 1)
		plan := exec.Compile(s, exec.Config{In: l, Out: l})
		in, want := make([]byte, plan.InLen()), make([]byte, plan.OutLen())
		for i := range in {
			in[i] = byte(1 + i%13)
		}
		if err := plan.Run(t.Context(), &busy{refuses: true}, transport.Signature{}, in, want, exec.Op{}); err != nil {
			t.Fatal(err)
		}
		out := make([]byte, len(want))
		ep := &busy{check: func(before bool) {
			if copied := bytes.Contains(out, in[:c.part]); copied == before {
				t.Errorf("%s: copied before the messages are under way %t", s.Algorithm, before)
			}
		}}
		for range 2 {
			clear(out)
			if err := plan.Run(t.Context(), ep, transport.Signature{}, in, out, exec.Op{}); err != nil {
				t.Fatal(err)
			}
		}
		if late := ep.offered == 2; late != c.late {
			t.Errorf("%s, parts of %d bytes: the copy is offered %t", s.Algorithm, c.part, late)
		}
		if c.late && !slices.Equal(out, want) {
			t.Errorf("%s: not what an endpoint leaves that calls nothing meanwhile", s.Algorithm)
		}
	}
}

func TestLateCopiesAllocateNothing(t *testing.T) {
	s := program(t, scatter)
	plan := compile(s, 64<<10)
	in, out := make([]byte, plan.InLen()), make([]byte, plan.OutLen())
	for _, ep := range []transport.Exchanger{silent{}, &busy{check: func(bool) {}}} {
		if n := testing.AllocsPerRun(100, func() {
			if err := plan.Run(t.Context(), ep, transport.Signature{}, in, out, exec.Op{}); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Error(fmt.Sprintf("%T", ep), n, "allocations, want 0")
		}
	}
}
