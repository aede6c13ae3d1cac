package chorale

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

const (
	// AnyRank, as the source of a receive or a probe, stands for every rank.
	AnyRank = transport.Any
	// AnyTag, as the tag of a receive or a probe, stands for every tag.
	AnyTag = transport.Any
	// RoundRobin, as the source of a receive, stands for every other rank in turn:
	// the first receive is from rank 0, the next from rank 1, and so on, again and
	// again, without this rank. Like AnyRank it receives from all ranks, but in an
	// order that does not depend on timing. Each tag has an order of its own, which the
	// communicator keeps while a round is incomplete. A receive that fails gives its turn
	// to the next one.
	RoundRobin = -2
)

// A Status describes a tagged message.
type Status struct {
	From  int // the sender
	Tag   int
	Count int // elements
}

// Send sends src to rank to, which may be this rank. The receiver picks messages by
// sender and tag; a tag is 0 or more. Messages from one rank to another with one tag
// arrive in the order in which they were sent.
//
// Send returns when src may be written again. A short message is copied, so Send
// may return before it is received. For a long message, Send returns when it has
// been received. The transport sets the bound.
//
// If ctx ends before the transfer has begun, Send returns its error, and the
// communicator stays usable; if it ends later, the communicator fails. After an
// ErrArgument it stays usable as well. If either rank has left, Send fails with
// ErrClosed or ErrLeft, and when c has failed, with the error that says why.
//
// Any number of goroutines may call Send and the functions below at the same time,
// also during collectives.
func Send[T any](ctx context.Context, c *Comm, src []T, to, tag int) error {
	if err := c.beginMessage("send"); err != nil {
		return err
	}
	if err := checkMessage[T](ctx, c, "send", to, tag); err != nil {
		c.endMessage(0)
		return err
	}
	if sendEager(ctx, c, src, to, tag) {
		return nil
	}
	return send(ctx, c, src, to, tag)
}

// sendEager sends a message that is copied at once. It is Send after the check of the
// arguments, if it reports that the message is sent.
func sendEager[T any](ctx context.Context, c *Comm, src []T, to, tag int) bool {
	e := c.job.eager
	if e == nil || !e.SendEager(ctx, c.jobRank(to), transport.Match{Context: c.context, Tag: tag}, typeName[T](), bytesOf(src)) {
		return false
	}
	c.endMessage(1)
	return true
}

// send is Send after the check of the arguments.
func send[T any](ctx context.Context, c *Comm, src []T, to, tag int) error {
	sent := int64(0)
	defer func() { c.endMessage(sent) }()
	err := c.job.endpoint.Send(ctx, c.jobRank(to), transport.Match{Context: c.context, Tag: tag}, typeName[T](), bytesOf(src))
	if err != nil {
		return c.messageFailed("send", messageText(len(src), typeName[T](), "to", to, tag), "", 0, err)
	}
	sent = 1
	return nil
}

// Recv receives a message into the beginning of dst, and returns when it is there.
// The message comes from one rank, or from AnyRank or RoundRobin, and has one tag,
// or AnyTag. The status holds its sender, tag and number of elements.
//
// If the message is longer than dst, or of another type, Recv fails with a
// [transport.SizeError] or [transport.TypeError], and the message can still be
// received; the status describes it. If ctx ends before a message is found, Recv
// returns its error. In these cases, and after an ErrArgument, the communicator stays
// usable. A message can be received after its sender has left; if there is none, Recv
// fails with ErrLeft, and from AnyRank when every other rank of c has left. When c has
// failed, as by the loss of any of its ranks, Recv fails with the error that says why, and
// messages that were not received are gone.
func Recv[T any](ctx context.Context, c *Comm, dst []T, from, tag int) (Status, error) {
	if err := c.beginMessage("recv"); err != nil {
		return Status{}, err
	}
	source, err := sourceOf[T](ctx, c, from, tag)
	if err != nil {
		c.endMessage(0)
		return Status{}, err
	}
	if s, ok := recvEager(ctx, c, dst, source, tag); ok {
		return s, nil
	}
	return recv(ctx, c, dst, source, tag)
}

// recvEager receives a message that has arrived, or arrives in a moment. It is Recv after
// sourceOf, if it reports that the message is received.
func recvEager[T any](ctx context.Context, c *Comm, dst []T, from source, tag int) (s Status, ok bool) {
	e := c.job.eager
	if e == nil {
		return s, false
	}
	got, ok := e.RecvEager(ctx, c.endpointRank(from.rank), transport.Match{Context: c.context, Tag: tag}, typeName[T](), bytesOf(dst))
	if !ok {
		return s, false
	}
	c.endMessage(-1)
	return receivedStatus[T](c, got), true
}

func receivedStatus[T any](c *Comm, got transport.Received) Status {
	return Status{From: c.groupRank(got.From), Tag: got.Tag, Count: got.Size / elementSize[T]()}
}

// A source is the rank that a receive is from, or AnyRank.
type source struct {
	rank       int
	roundRobin bool // the rank has its turn
}

// sourceOf checks the arguments of a receive, and gives RoundRobin its turn.
func sourceOf[T any](ctx context.Context, c *Comm, from, tag int) (source, error) {
	if from != RoundRobin {
		return source{rank: from}, checkMessage[T](ctx, c, "recv", from, tag)
	}
	if c.size == 1 {
		return source{}, c.argumentErrorf("recv", "RoundRobin on a communicator of one rank: there is no other rank")
	}
	if err := checkMessage[T](ctx, c, "recv", AnyRank, tag); err != nil {
		return source{}, err
	}
	return source{c.takeTurn(tag), true}, nil
}

// recv is Recv after sourceOf. A receive that fails returns its turn.
func recv[T any](ctx context.Context, c *Comm, dst []T, from source, tag int) (Status, error) {
	received := int64(0)
	defer func() { c.endMessage(-received) }()
	info, err := c.job.endpoint.Recv(ctx, c.endpointRank(from.rank), transport.Match{Context: c.context, Tag: tag}, typeName[T](), bytesOf(dst))
	if err != nil {
		if from.roundRobin {
			c.returnTurn(tag, from.rank)
		}
		return status[T](c, info), c.messageFailed("recv", messageText(len(dst), typeName[T](), "from", from.rank, tag), typeName[T](), elementSize[T](), err)
	}
	received = 1
	return status[T](c, info), nil
}

// SendRecv sends src to one rank and receives into dst from one rank at the same
// time, both with the same tag. So ranks that all call it do not wait for each
// other in a cycle. Dst and src must not overlap. SendRecv returns when both are
// done, and fails as [Send] and [Recv] do. If the receive fails, the send may or
// may not have been done.
func SendRecv[T any](ctx context.Context, c *Comm, dst []T, from int, src []T, to, tag int) (Status, error) {
	if c == nil {
		return Status{}, c.unusable("sendrecv")
	}
	if from != RoundRobin {
		if err := checkMessage[T](ctx, c, "recv", from, tag); err != nil {
			return Status{}, err
		}
	}
	if err := checkMessage[T](ctx, c, "send", to, tag); err != nil {
		return Status{}, err
	}
	if err := c.beginMessage("recv"); err != nil {
		return Status{}, err
	}
	if err := c.beginMessage("send"); err != nil {
		c.endMessage(0)
		return Status{}, err
	}
	source, err := sourceOf[T](ctx, c, from, tag)
	if err != nil {
		c.endMessage(0)
		c.endMessage(0)
		return Status{}, err
	}
	n := len(bytesOf(dst))
	first := receiveFirstMin <= n && n <= receiveFirstMax
	if !first && sendEager(ctx, c, src, to, tag) {
		if s, ok := recvEager(ctx, c, dst, source, tag); ok {
			return s, nil
		}
		return recv(ctx, c, dst, source, tag)
	}
	var s Status
	m := c.job.started.get()
	if first {
		r := c.job.started.get()
		got, ok := startRecv(ctx, c, r, dst, source, tag)
		startSend(ctx, c, m, src, to, tag)
		if ok {
			c.endMessage(-1)
			c.job.started.put(r)
			s = receivedStatus[T](c, got)
		} else {
			r.await()
			r.waited = true
			s, err = r.end()
			r.recycle()
		}
	} else {
		startSend(ctx, c, m, src, to, tag)
		s, err = recv(ctx, c, dst, source, tag)
	}
	if err != nil { // src is the caller's again when SendRecv returns
		c.job.endpoint.Cancel(&m.request, context.Canceled)
	}
	m.await()
	m.waited = true
	_, sent := m.end()
	m.recycle()
	return s, cmp.Or(err, sent)
}

// Of these many bytes, a message is copied once less if its receive waits for it. Receiving
// takes less time after a shorter one is sent, and both ranks copy a longer one at the same
// time.
const (
	receiveFirstMin = 2 << 10
	receiveFirstMax = 64 << 10
)

// Probe waits for a message from one rank, or AnyRank, with one tag, or AnyTag. It
// returns the status that Recv would return, with a count of elements of type T,
// and leaves the message to be received. It fails as [Recv] does.
func Probe[T any](ctx context.Context, c *Comm, from, tag int) (Status, error) {
	s, _, err := probe[T](ctx, c, from, tag, true)
	return s, err
}

// TryProbe is [Probe] without waiting. Found reports whether there is a message.
func TryProbe[T any](ctx context.Context, c *Comm, from, tag int) (s Status, found bool, err error) {
	return probe[T](ctx, c, from, tag, false)
}

func probe[T any](ctx context.Context, c *Comm, from, tag int, wait bool) (Status, bool, error) {
	if err := c.beginMessage("probe"); err != nil {
		return Status{}, false, err
	}
	defer c.endMessage(0)
	if err := checkMessage[T](ctx, c, "probe", from, tag); err != nil {
		return Status{}, false, err
	}
	info, found, err := c.job.endpoint.Probe(ctx, c.endpointRank(from), transport.Match{Context: c.context, Tag: tag}, wait)
	if err != nil {
		return Status{}, false, c.messageFailed("probe", messageText(-1, typeName[T](), "from", from, tag), "", 0, err)
	}
	if !found {
		return Status{}, false, nil
	}
	return status[T](c, info), true, nil
}

// messageText says which tagged message a call is about. A negative count is not known.
func messageText(count int, kind, direction string, peer, tag int) string {
	rank, withTag := fmt.Sprintf("rank %d", peer), fmt.Sprintf("tag %d", tag)
	if peer == AnyRank {
		rank = "any rank"
	}
	if tag == AnyTag {
		withTag = "any tag"
	}
	elements := kind
	if count >= 0 {
		elements = fmt.Sprintf("%d %s", count, kind)
	}
	return fmt.Sprintf("%s %s %s with %s", elements, direction, rank, withTag)
}

// checkMessage returns an argument error if the call names a rank or a tag that
// does not exist, or elements that cannot be sent.
func checkMessage[T any](ctx context.Context, c *Comm, call string, peer, tag int) error {
	receives := call != "send"
	switch {
	case ctx == nil:
		return c.argumentErrorf(call, "%w", errNoContext)
	case (peer < 0 || peer >= c.size) && !(receives && peer == AnyRank):
		return c.argumentErrorf(call, "no rank %d: want 0 to %d", peer, c.size-1)
	case tag < 0 && !(receives && tag == AnyTag):
		return c.argumentErrorf(call, "tag %d: want 0 or more", tag)
	}
	if err := checkElement(reflect.TypeFor[T]()); err != nil {
		return c.argumentErrorf(call, "%w", err)
	}
	return nil
}

// endpointRank returns the job's rank that a receive is from, or Any.
func (c *Comm) endpointRank(from int) int {
	if from == AnyRank {
		return transport.Any
	}
	return c.jobRank(from)
}

func status[T any](c *Comm, info transport.MessageInfo) Status {
	return statusOf(c, &info, elementSize[T]())
}

// elementSize returns the size of an element in bytes, and 1 for an empty one.
func elementSize[T any]() int { return max(1, int(unsafe.Sizeof(*new(T)))) }

func statusOf(c *Comm, info *transport.MessageInfo, size int) Status {
	return Status{From: c.groupRank(info.From), Tag: info.Tag, Count: info.Size / size}
}
