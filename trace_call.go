package chorale

import (
	"context"
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/trace"
	"github.com/chorale-go/chorale/transport"
)

// A shapeKey tells the shapes of a rank apart.
type shapeKey struct {
	signature string
	ranks     string // of the communicator
}

// A tracedCall records the calls of one communicator, one at a time. It is the exchanger of
// a call that is recorded.
type tracedCall struct {
	job    *job
	tracer *tracer

	next     uint32 // the number after the last call that was recorded
	sequence uint32
	start    int64
	steps    []trace.Event
	at       int64            // when the last step ended
	learned  []trace.Exchange // the messages of the steps, if the call's shape is not known
	learns   bool

	op        exec.Op // of the call
	timedOp   exec.Op // which calls it
	combining combining
}

// A combining is how long operands of a step were combined. Pieces shorter than timedPiece
// count as many bytes, and are timed together with those that follow.
type combining struct {
	bytes, timed, since int   // combined, while timed, and since the last one that was timed
	time                int64 // in nanoseconds
}

// timedPiece is how many bytes are combined while the clock is read twice, at least.
const timedPiece = 16 << 10

// estimate returns how long all of the combining took.
func (c *combining) estimate() int64 {
	if c.timed == 0 {
		return 0
	}
	return int64(float64(c.time) * float64(c.bytes) / float64(c.timed))
}

// combine combines a piece.
func (t *tracedCall) combine(f func(into, held, incoming []byte), into, held, incoming []byte) {
	c := &t.combining
	c.bytes += len(into)
	if c.since += len(into); c.since < timedPiece {
		f(into, held, incoming)
		return
	}
	start := t.tracer.now()
	f(into, held, incoming)
	c.time += t.tracer.now() - start
	c.timed += len(into)
	c.since = 0
}

// trace begins to record a call, and returns nil if it is not to be.
func (c *Comm) trace(sequence uint32) *tracedCall {
	tr := c.job.tracer
	if tr == nil {
		return nil
	}
	t := c.traced
	if t == nil {
		t = &tracedCall{job: c.job, tracer: tr, next: sequence}
		t.timedOp = exec.Op{
			Left:  func(into, held, incoming []byte) { t.combine(t.op.Left, into, held, incoming) },
			Right: func(into, held, incoming []byte) { t.combine(t.op.Right, into, held, incoming) },
		}
		c.traced = t
	}
	number := sequence - c.identity.base
	if by := c.starter; by != nil {
		if !by.known { // it was to be left out when it was started
			return nil
		}
		number = by.number + sequence - c.first
	}
	if tr.leavesOut(number) {
		return nil
	}
	t.sequence, t.start, t.steps = sequence, tr.now(), t.steps[:0]
	t.at, t.combining = t.start, combining{}
	return t
}

// around returns what the plan of a call runs with so that its steps are recorded.
func (t *tracedCall) around(call *call, op exec.Op) (transport.Exchanger, exec.Op) {
	t.learns, t.learned = call.shape == 0, nil
	t.op = op
	if op.Left == nil {
		return t, op
	}
	return t, t.timedOp
}

func (t *tracedCall) Exchange(ctx context.Context, step transport.Step) error {
	if t.learns {
		t.learned = append(t.learned, t.job.exchangeOf(step))
	}
	err := t.job.endpoint.Exchange(ctx, step)
	now := t.tracer.now()
	if len(t.steps) < t.tracer.max {
		t.steps = append(t.steps, trace.Event{Kind: trace.Step, Start: t.at, End: now, Amount: t.combining.estimate()})
	}
	t.at, t.combining = now, combining{}
	return err
}

// exchangeOf returns the messages of a step.
func (j *job) exchangeOf(step transport.Step) (x trace.Exchange) {
	for _, s := range step.Sends {
		for _, to := range s.To {
			x.Sends = append(x.Sends, trace.Message{Peer: j.launchRank(to), Bytes: len(s.Data)})
		}
	}
	for _, r := range step.Recvs {
		x.Recvs = append(x.Recvs, trace.Message{Peer: j.launchRank(r.From), Bytes: len(r.Into)})
	}
	return x
}

// end records the call, with its error.
func (t *tracedCall) end(c *Comm, call *call, err error) {
	var stack callers
	if c.starter != nil {
		stack = c.starter.stack
	} else {
		stack = callersHere(3)
	}
	tr, now := t.tracer, t.tracer.now()
	tr.skipped.Add(int64(t.sequence - t.next))
	t.next, t.op = t.sequence+1, exec.Op{}

	tr.mu.Lock()
	defer tr.mu.Unlock()
	shape := call.shape
	if shape == 0 {
		shape = tr.shape(c, call, t.learned)
		if err == nil {
			call.shape = shape
		}
	}
	tr.pay(now, len(t.steps))
	tr.ring.Add(trace.Event{
		Kind: trace.Call, Failed: err != nil, Place: tr.place(stack), Shape: shape,
		Group: uint16(c.job.env.Group), Context: c.context, Sequence: t.sequence, Start: t.start, End: now,
	})
	for _, s := range t.steps {
		tr.ring.Add(s)
	}
}

// shape returns the index of the shape of a call that has these messages.
func (t *tracer) shape(c *Comm, call *call, steps []trace.Exchange) int32 {
	ranks := slices.Clone(c.job.ranksOf(&c.group)[:c.size])
	for i, rank := range ranks {
		ranks[i] = c.job.launchRank(rank)
	}
	key := shapeKey{call.signature, fmt.Sprint(ranks)}
	if i, known := t.index[key]; known && len(t.shapes[i].Steps) >= len(steps) {
		return i
	}
	ends := 0
	for _, x := range steps {
		ends += 1 + len(x.Sends) + len(x.Recvs)
	}
	if t.exchanged+ends > maxTracedMessages || len(t.shapes) == maxTracedShapes {
		return 0
	}
	t.exchanged += ends
	i := int32(len(t.shapes))
	k := &call.key
	t.shapes = append(t.shapes, trace.Shape{
		Collective: k.collective.String(), Algorithm: call.algorithm,
		Type: k.elem.String(), Size: int(k.elem.Size()), Count: k.count, Bytes: call.plan.Stats().Bytes,
		Uneven: k.uneven != 0, Root: k.root, P: c.size, Rank: c.rank, First: ranks[0], Steps: steps,
	})
	t.index[key] = i
	return i
}
