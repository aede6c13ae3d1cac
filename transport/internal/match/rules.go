package match

import "github.com/chorale-go/chorale/transport"

// A Call is a collective call: the one that this rank is in, or the one that a
// message belongs to.
type Call struct {
	transport.Signature        // Call is empty where messages carry Hash instead
	Hash                uint32 // of Signature.Call; 0 where messages carry the text
}

// Contradicts reports whether two calls of one context have the same number and
// are different calls nevertheless.
func (c *Call) Contradicts(d *Call) bool { return c.Sequence == d.Sequence && !c.sameText(d) }

// Same reports whether two calls of one context are the same call.
func (c *Call) Same(d *Call) bool { return c.Sequence == d.Sequence && c.sameText(d) }

func (c *Call) sameText(d *Call) bool {
	if c.Hash|d.Hash != 0 {
		return c.Hash == d.Hash
	}
	return c.Signature.Call == d.Signature.Call
}

// CallOf returns the call that a frame of the queue's peer names. It allocates nothing
// where the text is that of the frame before, or of the receive that waits.
func (q *Queue) CallOf(context, sequence uint32, text []byte) Call {
	if string(text) != q.call {
		if r := q.Posted(context); r != nil && string(text) == r.Step.Signature.Call {
			q.call = r.Step.Signature.Call
		} else {
			q.call = string(text)
		}
	}
	return Call{Signature: transport.Signature{Context: context, Sequence: sequence, Call: q.call}}
}

// Before reports whether call number a precedes call number b. Numbers may have
// wrapped around.
func Before(a, b uint32) bool { return int32(a-b) < 0 }

// A Header is the match header of a message of a step.
type Header struct {
	Call
	Size int // bytes of the whole message
}

// A Verdict is what becomes of a message of a step that has arrived.
type Verdict uint8

const (
	// Deliver: the message belongs to the receive.
	Deliver Verdict = iota
	// Unexpected: no receive may have the message yet. It stays where it is, or is
	// added to the unexpected queue.
	Unexpected
	// Continue: an unexpected message that has not arrived completely belongs to the
	// receive, which takes what has arrived, and then the rest.
	Continue
	// Mismatch: the peer is in another call.
	Mismatch
	// WrongSize: the message is not as long as its receive.
	WrongSize
	// Drop: the communicator is revoked. The message is taken, and thrown away.
	Drop
)

// Steps are those in progress.
type Steps interface {
	// StepIn returns the step in progress in a context, or nil.
	StepIn(context uint32) *Step
	// IsRevoked reports whether what arrives in a context is dropped.
	IsRevoked(context uint32) bool
}

// excludes reports whether no receive will ever take a message of a call from a peer
// of which the step in progress expects none: that call is over, or another call has
// its number.
func (s *Step) excludes(c *Call) bool {
	return Before(c.Sequence, s.Sequence) || s.Contradicts(c)
}

// Match returns what becomes of the next message from the queue's peer. With
// Deliver and WrongSize it returns the receive, and with Mismatch the step of this
// rank that the message contradicts.
func (q *Queue) Match(h *Header, steps Steps) (Verdict, *Recv, *Step) {
	r := q.Posted(h.Context)
	switch {
	case r == nil:
		if steps.IsRevoked(h.Context) {
			return Drop, nil, nil
		}
		if s := steps.StepIn(h.Context); s != nil && s.excludes(&h.Call) {
			return Mismatch, nil, s
		}
	case q.FirstIn(h.Context) != nil: // that message is for r
	case !h.Same(&r.Step.Call):
		return Mismatch, nil, r.Step
	case h.Size != len(r.Into):
		return WrongSize, r, r.Step
	case !r.HeldBack:
		return Deliver, r, r.Step
	}
	return Unexpected, nil, nil
}
