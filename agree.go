package chorale

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/internal/agreement"
	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/transport"
)

// Agree returns the bits that are set in the values of all ranks: the same on all of them,
// although some may be lost before or meanwhile, and c may have failed. All ranks call it
// that are not lost. A rank that is lost, has given up or has left counts with its value, or
// it does not count, on all ranks alike: [Comm.Lost] says which do not. What a rank has
// returned that is lost afterwards, the others return too.
//
// Agree is for what all survivors have to do alike, as whether to go on, or from where: a
// value of which a bit is 0 where one rank has failed. It works on any communicator but
// that of a function of [Start] or [Prepare], and beside its other calls. It does not make
// a failed communicator work again; [Comm.Shrink] does. Agreements of one communicator,
// which Shrink and [Comm.Grow] make too, follow each other: a second one at the same time is
// an ErrBusy. If ranks call different ones of them, some get a [MismatchError].
//
// If ctx ends before the value is known, or after a MismatchError, this rank takes no part in
// any later agreement of c either. The others take that as its loss, so that they do not
// wait for it.
//
// The lowest rank that is not lost sends two short messages to each of the others. Each of
// these sends it two more than to the rest, which get one. A call takes the time of four
// messages that follow each other. If the lowest rank is lost meanwhile, three of them are
// repeated with the next one, when the loss is noticed.
func (c *Comm) Agree(ctx context.Context, value uint64) (uint64, error) {
	a, err := c.beginAgreement(ctx, agreeCall)
	if err != nil {
		return 0, err
	}
	defer a.end()
	v, err := a.run(ctx, agreement.Value{Flags: value})
	return v.Flags, err
}

// Lost returns the ranks of c, in ascending order, that did not count in the last
// [Comm.Agree], [Comm.Shrink] or [Comm.Grow] of this rank on c. They are the same on all
// ranks after the same call. It returns nil before the first one. A rank that was lost since
// may be missing.
func (c *Comm) Lost() []int {
	if c == nil {
		return nil
	}
	r := &c.resilience
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lost)
}

// resilience is what a communicator has for calls that go on when it has failed.
type resilience struct {
	mu        sync.Mutex
	comm      *Comm                  // of the resilient context; its sequence counts the agreements
	lost      []int                  // in the last agreement
	withdrawn []*transport.PeerError // by rank, why it takes no part any more; nil if all do
	err       error                  // why this rank takes no part any more
}

func (r *resilience) free() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.comm != nil {
		r.comm.close()
	}
}

// An agreementCall is a call that ranks make together.
type agreementCall byte

// The first byte of a message after its number.
const (
	withdrawal agreementCall = iota // in place of a call: the sender takes no part any more
	agreeCall
	shrinkCall
	growCall
)

func (a agreementCall) String() string { return [...]string{"withdraw", "agree", "shrink", "grow"}[a] }

// agreements are those of one call. Messages of one rank to another all have the same tag,
// so that they are received in the order in which they were sent.
type agreements struct {
	c    *Comm // of the resilient context
	of   *Comm
	call agreementCall

	member *agreement.Member
	ended  []bool // ranks that send nothing more in this agreement
	in     []byte
	sends  []*transport.Request // not done
}

const (
	agreementType   = "agreement"
	agreementHeader = 4 + 1
	reasonMax       = 200 // bytes of a withdrawal's reason
)

// beginAgreement begins a call of agreements. The caller ends it.
func (c *Comm) beginAgreement(ctx context.Context, call agreementCall) (*agreements, error) {
	if err := c.checkPart(call.String()); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, c.argumentErrorf(call.String(), "%w", errNoContext)
	}
	r := &c.resilience
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.comm == nil {
		r.comm = c.part(resilientPart)
		r.withdrawn = make([]*transport.PeerError, c.size)
	}
	if !r.comm.state.CompareAndSwap(idle, busy) {
		return nil, r.comm.unusable(call.String())
	}
	if r.err != nil {
		r.comm.end()
		return nil, c.newError(call.String(), fmt.Errorf("this rank has left the agreements of the communicator: %w", r.err))
	}
	return &agreements{
		c: r.comm, of: c, call: call,
		in: make([]byte, agreementHeader+max(reasonMax, agreement.MaxLen(c.size))),
	}, nil
}

// end ends the call. What is not sent yet goes on.
func (a *agreements) end() {
	if len(a.sends) > 0 {
		go func() {
			for _, r := range a.sends {
				a.c.job.endpoint.Wait(r)
			}
		}()
	}
	a.c.end()
}

// run agrees on one value.
func (a *agreements) run(ctx context.Context, value agreement.Value) (agreement.Value, error) {
	c := a.c
	c.sequence++
	a.ended = make([]bool, c.size)
	var lost []int
	for rank, why := range a.of.resilience.withdrawn {
		if why != nil {
			a.ended[rank] = true
			lost = append(lost, rank)
		}
	}
	a.member = agreement.New(c.rank, c.size, value, a.send)
	if err := transport.Cause(ctx); err != nil {
		return agreement.Value{}, a.withdraw(err)
	}
	a.member.Start(lost...)
	for {
		decided, ok := a.member.Decided()
		if ok {
			return decided, a.settle(ctx, decided)
		}
		if err := a.receive(ctx, a.member.Awaited()[0]); err != nil {
			return agreement.Value{}, a.withdraw(err)
		}
	}
}

// settle receives what the others still send. When all have decided, no message is left: a
// communicator that is freed then leaves none behind. A context that has ended hinders
// nothing any more: messages that are left are dropped by the next agreement.
func (a *agreements) settle(ctx context.Context, decided agreement.Value) error {
	for rank, ended := range a.ended {
		for rank != a.c.rank && !ended && !a.member.IsLost(rank) {
			if a.receive(ctx, rank) != nil {
				break
			}
			ended = a.ended[rank]
		}
	}
	r := &a.of.resilience
	r.mu.Lock()
	r.lost = decided.Lost
	r.mu.Unlock()
	if slices.Contains(decided.Lost, a.c.rank) {
		return a.failed(fmt.Errorf("the other ranks take this one for lost: %w", ErrLost))
	}
	return nil
}

// failed returns the Error of the call.
func (a *agreements) failed(err error) error {
	e := a.of.newError(a.call.String(), err)
	e.Where = callsite.Line()
	a.of.attribute(e)
	return e
}

// withdraw ends this rank's part in the agreements of the communicator because of an error,
// and returns the error of the call.
func (a *agreements) withdraw(err error) error {
	a.of.resilience.mu.Lock()
	a.of.resilience.err = err
	a.of.resilience.mu.Unlock()
	reason := err.Error()
	b := append(a.header(withdrawal), reason[:min(len(reason), reasonMax)]...)
	for rank := range a.c.size {
		if rank != a.c.rank && !a.member.IsLost(rank) {
			a.start(rank, b)
		}
	}
	return a.failed(err)
}

func (a *agreements) header(call agreementCall) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, a.c.sequence), byte(call))
}

// send sends a message of the agreement.
func (a *agreements) send(to int, m agreement.Message) { a.start(to, m.Append(a.header(a.call))) }

// start starts to send. The message belongs to no context that may end: it is short, and
// needs no more than that its receiver makes progress.
func (a *agreements) start(to int, b []byte) {
	r := new(transport.Request)
	a.c.job.endpoint.StartSend(context.Background(), r, a.c.jobRank(to), transport.Match{Context: a.c.context}, agreementType, b)
	if !r.Done() {
		a.sends = append(a.sends, r)
	}
}

// receive takes one message of a rank, or its loss.
func (a *agreements) receive(ctx context.Context, from int) error {
	endpoint := a.c.job.endpoint
	info, err := endpoint.Recv(ctx, a.c.jobRank(from), transport.Match{Context: a.c.context}, agreementType, a.in)
	if err != nil {
		var gone *transport.PeerError
		if own := a.c.job.endpointError(); own != nil || !errors.As(err, &gone) {
			return err
		}
		a.lose(from)
		return nil
	}
	b := a.in[:info.Size]
	if len(b) < agreementHeader {
		return fmt.Errorf("%d bytes of rank %d: want a message of an agreement", len(b), info.From)
	}
	number, call := binary.LittleEndian.Uint32(b), agreementCall(b[4])
	b = b[agreementHeader:]
	switch {
	case call == withdrawal:
		a.of.resilience.withdrawn[from] = &transport.PeerError{Peer: info.From, Err: transport.ErrAborted, Reason: string(b)}
		a.lose(from)
		return nil
	case int32(number-a.c.sequence) < 0: // of an agreement that this rank had decided before
		return nil
	case call != a.call || number != a.c.sequence:
		return &transport.MismatchError{
			Rank: endpoint.Rank(), Peer: info.From,
			Mine: a.signature(a.c.sequence, a.call), Theirs: a.signature(number, call),
		}
	}
	m, err := agreement.Parse(b, a.c.size)
	if err != nil {
		return fmt.Errorf("%d bytes of rank %d: %w", len(b), info.From, err)
	}
	a.ended[from] = m.Kind == agreement.Decide
	a.member.Receive(from, m)
	return nil
}

func (a *agreements) lose(rank int) {
	a.ended[rank] = true
	a.member.Lose(rank)
}

func (a *agreements) signature(number uint32, call agreementCall) transport.Signature {
	name := fmt.Sprintf("call %d", call)
	if call <= growCall {
		name = call.String()
	}
	return transport.Signature{Context: a.of.context, Sequence: number, Call: name}
}
