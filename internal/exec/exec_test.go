package exec_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// An echo is an exchanger each of whose peers sends the bytes that this rank sends,
// plus ten.
type echo struct{ steps []transport.Step }

func (e *echo) Exchange(_ context.Context, step transport.Step) error {
	e.steps = append(e.steps, transport.Step{Sends: slices.Clone(step.Sends), Recvs: slices.Clone(step.Recvs)})
	if len(step.Sends) == 0 {
		return errors.New("nothing to echo")
	}
	for i, r := range step.Recvs {
		incoming := slices.Clone(step.Sends[i].Data)
		for k := range incoming {
			incoming[k] += 10
		}
		if r.Combine == nil {
			copy(r.Into, incoming)
		} else {
			r.Combine(r.Into, r.Held, incoming)
		}
	}
	return nil
}

var difference = exec.Op{
	Right: func(into, held, incoming []byte) { subtract(into, held, incoming) },
	Left:  func(into, held, incoming []byte) { subtract(into, incoming, held) },
}

func subtract(dst, a, b []byte) {
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func program(t *testing.T, text string) *sched.Schedule {
	t.Helper()
	s, err := sched.ParseText([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compile compiles rank 0 of a schedule for parts or vectors of count bytes.
func compile(s *sched.Schedule, count int) *exec.Plan {
	l := exec.NewLayout(s, count, 1)
	return exec.Compile(s, exec.Config{In: l, Out: l})
}

// run runs rank 0 of a schedule.
func run(t *testing.T, text string, in, out []byte) *echo {
	t.Helper()
	s := program(t, text)
	ep := new(echo)
	plan := compile(s, len(in))
	if err := plan.Run(t.Context(), ep, transport.Signature{}, in, out, difference); err != nil {
		t.Fatal(err)
	}
	return ep
}

const exchange = `
schedule allreduce exchange
ranks 2
rank 0
  step
    copy in 0..1 to out 0
    send in 0..1 to 1
    recv out 0..1 from 1 combine left
`

func TestCopyThatOnlyProvidesAnOperandIsFusedWithTheReceive(t *testing.T) {
	in, out := []byte{1, 2, 3}, make([]byte, 3)
	ep := run(t, exchange, in, out)
	if want := []byte{10, 10, 10}; !slices.Equal(out, want) {
		t.Errorf("out %v, want %v", out, want)
	}
	if held := ep.steps[0].Recvs[0].Held; &held[:1][0] != &in[0] {
		t.Error("held is not in: the copy was done")
	}
}

func TestInPlaceRunCopiesTheInputIfTheProgramNeedsBothBuffers(t *testing.T) {
	buf := []byte{1, 2, 3}
	ep := run(t, exchange, buf, buf)
	if want := []byte{10, 10, 10}; !slices.Equal(buf, want) {
		t.Errorf("buf %v, want %v", buf, want)
	}
	if data := ep.steps[0].Sends[0].Data; &data[:1][0] == &buf[0] {
		t.Error("the step sends the memory that it writes")
	}
}

func TestCopyThatAnotherCopyReadsIsNotFused(t *testing.T) {
	out := make([]byte, 3)
	run(t, `
schedule allreduce exchange
ranks 2
scratch 1
rank 0
  step
    copy in 0..1 to out 0
    copy out 0..1 to scratch 0
    send scratch 0..1 to 1
    recv out 0..1 from 1 combine right
`, []byte{1, 2, 3}, out)
	if want := []byte{246, 246, 246}; !slices.Equal(out, want) {
		t.Errorf("out %v, want %v", out, want)
	}
}

func TestScratchCoversOnlyTheBlocksThatTheProgramTouches(t *testing.T) {
	ep := run(t, `
schedule allreduce corner
ranks 2
blocks 4
scratch 4000000
rank 0
  step
    send in 0..2 to 1
    recv scratch 3999998..4000000 from 1
`, make([]byte, 8), make([]byte, 8))
	if got := cap(ep.steps[0].Recvs[0].Into); got != 4 {
		t.Errorf("%d bytes of scratch, want 4", got)
	}
}

func TestLengthsOfBlocksDifferByAtMostOneElement(t *testing.T) {
	s := program(t, "schedule bcast x\nranks 2\nblocks 3")
	for count, want := range map[int][]int{
		0: {0, 0, 0, 0},
		1: {0, 0, 0, 4},
		2: {0, 0, 4, 8},
		7: {0, 8, 16, 28},
	} {
		l := exec.NewLayout(s, count, 4)
		if got := []int{l.At(0), l.At(1), l.At(2), l.At(3)}; !slices.Equal(got, want) {
			t.Errorf("%d elements in 3 blocks begin at bytes %v, want %v", count, got, want)
		}
	}
	s = program(t, "schedule allgather x\nranks 2\nblocks 4")
	l := exec.NewLayout(s, 3, 1) // two parts of 3 elements, in 2 blocks each
	if got, want := []int{l.At(0), l.At(1), l.At(2), l.At(3), l.At(4), l.At(5)}, []int{0, 1, 3, 4, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("blocks begin at %v, want %v", got, want)
	}
}

func TestPartsArePaddedWhereBlocksMustHaveEqualLengths(t *testing.T) {
	s := program(t, `
schedule alltoall rows
ranks 2
blocks 4
scratch 4
equal-blocks
rank 0
  step
    copy in 0..1 to scratch 1
    copy in 1..2 to scratch 0
    send in 2..4 to 1
    recv out 2..4 from 1
  step
    copy scratch 0..1 to out 1
    copy scratch 1..2 to out 0
`)
	ep := new(echo)
	plan := compile(s, 3) // 3 elements in 2 blocks are padded to 4
	in, out := []byte{1, 2, 3, 4, 5, 6}, make([]byte, 6)
	for range 2 {
		if err := plan.Run(t.Context(), ep, transport.Signature{}, in, out, exec.Op{}); err != nil {
			t.Fatal(err)
		}
		if want := []byte{1, 2, 3, 14, 15, 16}; !slices.Equal(out, want) {
			t.Errorf("out %v, want %v", out, want)
		}
	}
	if got, want := ep.steps[0].Sends[0].Data, []byte{4, 5, 6, 6}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v: the last element fills the gap", got, want)
	}
}

func TestStepErrorNamesTheStep(t *testing.T) {
	s := program(t, `
schedule bcast late
ranks 2
root 1
rank 0
  step
    copy out 0..1 to out 0
  step
    recv out 0..1 from 1
`)
	err := compile(s, 1).Run(t.Context(), new(echo), transport.Signature{}, nil, []byte{0}, exec.Op{})
	if err == nil || err.Error() != "step 1: nothing to echo" {
		t.Errorf("got %v", err)
	}
}

func TestMembersTranslateRanks(t *testing.T) {
	s := program(t, exchange)
	ep := new(echo)
	plan := exec.Compile(s, exec.Config{In: exec.NewLayout(s, 1, 1), Out: exec.NewLayout(s, 1, 1), Members: []int{4, 7}})
	if err := plan.Run(t.Context(), ep, transport.Signature{}, []byte{1}, []byte{0}, difference); err != nil {
		t.Fatal(err)
	}
	if step := ep.steps[0]; step.Sends[0].To[0] != 7 || step.Recvs[0].From != 7 {
		t.Errorf("sends to %d, receives from %d: want 7", step.Sends[0].To, step.Recvs[0].From)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	s := program(t, exchange)
	plan := compile(s, 1)
	ep := silent{}
	in, out := []byte{1}, []byte{0}
	if n := testing.AllocsPerRun(100, func() {
		if err := plan.Run(t.Context(), ep, transport.Signature{}, in, out, difference); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// A silent exchanger completes every step without a message.
type silent struct{}

func (silent) Exchange(context.Context, transport.Step) error { return nil }

func TestReceivesAreTemporalIfTheConfigSaysSo(t *testing.T) {
	for _, temporal := range []bool{false, true} {
		s := program(t, exchange)
		ep := new(echo)
		l := exec.NewLayout(s, 1, 1)
		plan := exec.Compile(s, exec.Config{In: l, Out: l, Temporal: temporal})
		if err := plan.Run(t.Context(), ep, transport.Signature{}, []byte{1}, []byte{0}, difference); err != nil {
			t.Fatal(err)
		}
		if got := ep.steps[0].Recvs[0].Temporal; got != temporal {
			t.Errorf("the receive has Temporal %v, want %v", got, temporal)
		}
	}
}
