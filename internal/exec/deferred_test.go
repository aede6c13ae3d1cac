package exec_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/transport"
)

// deferred compiles rank 0 of a schedule whose operation is called outside of Exchange.
func deferred(t *testing.T, text string, count int) *exec.Plan {
	t.Helper()
	s := program(t, text)
	l := exec.NewLayout(s, count, 1)
	return exec.Compile(s, exec.Config{In: l, Out: l, Deferred: true})
}

// An inside is an echo that says whether an Exchange is in progress.
type inside struct {
	echo
	now bool
}

func (e *inside) Exchange(ctx context.Context, step transport.Step) error {
	e.now = true
	defer func() { e.now = false }()
	return e.echo.Exchange(ctx, step)
}

// In one step: a combination with a copy that is fused, two receives of one block in
// order, and one that replaces what the first has combined.
const orderly = `
schedule allreduce orderly
ranks 2
blocks 3
scratch 3
rank 0
  step
    copy in 0..3 to scratch 0
    copy in 0..1 to out 0
    send in 0..1 to 1
    send in 1..2 to 1
    send in 2..3 to 1
    send in 0..1 to 1
    recv out 0..1 from 1 combine left
    recv scratch 1..2 from 1 combine right
    recv scratch 1..2 from 1 combine left
    recv scratch 1..2 from 1
  step
    copy scratch 1..2 to out 1
    copy scratch 2..3 to out 2
    send scratch 1..2 to 1
    recv out 2..3 from 1 combine right
`

func TestDeferredOperationIsCalledBetweenExchanges(t *testing.T) {
	for _, text := range []string{exchange, orderly} {
		ep := new(inside)
		op := exec.Op{
			Right: func(into, held, incoming []byte) {
				if ep.now {
					t.Error("the operation is called during an Exchange")
				}
				subtract(into, held, incoming)
			},
			Left: func(into, held, incoming []byte) {
				if ep.now {
					t.Error("the operation is called during an Exchange")
				}
				subtract(into, incoming, held)
			},
		}
		in, out, want := []byte{1, 2, 3}, make([]byte, 3), make([]byte, 3)
		run(t, text, in, want)
		plan := deferred(t, text, len(in))
		for range 2 {
			if err := plan.Run(t.Context(), ep, transport.Signature{}, in, out, op); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(out, want) {
				t.Errorf("out %v, want %v as without deferring", out, want)
			}
		}
		for _, step := range ep.steps {
			for _, r := range step.Recvs {
				if r.Combine != nil {
					t.Error("a receive combines")
				}
			}
		}
	}
}

func TestPanicOfAnOperationComesBeforeTheNextSend(t *testing.T) {
	ep := new(inside)
	plan := deferred(t, orderly, 3)
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic does not pass through Run")
			}
		}()
		boom := func(_, _, _ []byte) { panic("boom") }
		plan.Run(t.Context(), ep, transport.Signature{}, make([]byte, 3), make([]byte, 3), exec.Op{Left: boom, Right: boom})
	}()
	if len(ep.steps) != 1 {
		t.Errorf("%d steps were done, want 1", len(ep.steps))
	}
	plan.Release()
}

// A cached plan must not keep the caller's memory alive.
func TestFailedRunKeepsNoReference(t *testing.T) {
	texts := []string{exchange, scatter}
	for i, ep := range []transport.Exchanger{failing{}, silent{}, failing{}, silent{}} {
		name, plan := fmt.Sprintf("%T", ep), compile(program(t, texts[i/2]), 1<<20)
		in, out := make([]byte, plan.InLen()), make([]byte, plan.OutLen())
		pointers := []weak.Pointer[byte]{weak.Make(&in[0]), weak.Make(&out[0])}
		plan.Run(t.Context(), ep, transport.Signature{}, in, out, difference)
		in, out = nil, nil
		runtime.GC()
		for _, p := range pointers {
			if p.Value() != nil {
				t.Errorf("%s: the plan refers to the memory of the call", name)
			}
		}
		runtime.KeepAlive(plan)
	}
}

// A failing exchanger fails.
type failing struct{}

func (failing) Exchange(context.Context, transport.Step) error { return errors.New("failed") }

func TestPlansShareOneMemory(t *testing.T) {
	s := program(t, orderly)
	var memory exec.Memory
	for _, count := range []int{30000, 3, 300, 30000} {
		l := exec.NewLayout(s, count, 1)
		plan := exec.Compile(s, exec.Config{Memory: &memory, In: l, Out: l})
		in, out, want := make([]byte, count), make([]byte, count), make([]byte, count)
		for i := range in {
			in[i] = byte(i)
		}
		if err := compile(s, count).Run(t.Context(), new(echo), transport.Signature{}, in, want, difference); err != nil {
			t.Fatal(err)
		}
		if err := plan.Run(t.Context(), new(echo), transport.Signature{}, in, out, difference); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out, want) {
			t.Errorf("%d bytes: not as with memory of its own", count)
		}
	}
}
