package chorale

import (
	"cmp"
	"context"
	"reflect"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

const (
	// AnyRank stands for every rank, where a message is looked for.
	AnyRank = transport.Any
	// AnyTag stands for every tag, where a message is looked for.
	AnyTag = transport.Any
	// InTurn stands for every other rank in turn, where a message is received:
	// the first time for rank 0, then for rank 1, and so on, again and again,
	// without this rank. It takes from all as AnyRank does, but in an order that
	// does not depend on timing. Each tag has a turn of its own.
	InTurn = -2
)

// A Status says what is known of a message.
type Status struct {
	From  int // the sender
	Tag   int
	Count int // elements
}

// Send sends src to one rank. A receiver picks messages by sender and tag; the
// tag is 0 or more. Short messages are on their way when Send returns, whether
// or not they are received; a long one has been received. Messages from one
// rank to another with one tag arrive in order. Send and the functions below
// may be called by any number of goroutines, beside collectives.
func Send[T any](ctx context.Context, c *Comm, src []T, to, tag int) error {
	m, err := mailer[T](c, "send", to, tag)
	if err != nil {
		return err
	}
	kind := reflect.TypeFor[T]()
	if err := m.Send(ctx, c.member(to), transport.Match{Context: c.context, Tag: tag}, kind.String(), bytesOf(src)); err != nil {
		return c.failed("send", err)
	}
	return nil
}

// Recv receives a message from one rank, or from AnyRank or InTurn, with one
// tag or AnyTag, into the beginning of dst. The status says from whom, and how
// many elements came. A message that is longer than dst, or of another type, is
// an error, and stays to be received.
func Recv[T any](ctx context.Context, c *Comm, dst []T, from, tag int) (Status, error) {
	inTurn := from == InTurn
	if inTurn {
		from = c.nextInTurn(tag)
	}
	m, err := mailer[T](c, "recv", from, tag)
	if err != nil {
		return Status{}, err
	}
	if inTurn && c.size == 1 {
		return Status{}, c.wrong("recv", "InTurn on a communicator of one rank: there is no other rank")
	}
	kind := reflect.TypeFor[T]()
	e, err := m.Recv(ctx, c.source(from), transport.Match{Context: c.context, Tag: tag}, kind.String(), bytesOf(dst))
	if err != nil {
		if inTurn {
			c.keepTurn(tag, from)
		}
		return status[T](c, e), c.failed("recv", err)
	}
	return status[T](c, e), nil
}

// SendRecv sends src to one rank and receives into dst from one rank at the
// same time, both with the same tag, so that ranks which all call it do not
// wait for each other in a circle. Dst and src must not overlap.
func SendRecv[T any](ctx context.Context, c *Comm, dst []T, from int, src []T, to, tag int) (Status, error) {
	if from != InTurn {
		if _, err := mailer[T](c, "recv", from, tag); err != nil {
			return Status{}, err
		}
	}
	if _, err := mailer[T](c, "send", to, tag); err != nil {
		return Status{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	send := StartSend(ctx, c, src, to, tag)
	s, err := Recv(ctx, c, dst, from, tag)
	if err != nil {
		cancel() // src is the caller's again when this returns
	}
	return s, cmp.Or(err, send.Wait())
}

// Probe waits for a message from one rank, or AnyRank, with one tag or AnyTag,
// and says what Recv would receive, in elements of type T.
func Probe[T any](ctx context.Context, c *Comm, from, tag int) (Status, error) {
	s, _, err := peek[T](ctx, c, from, tag, true)
	return s, err
}

// TryProbe is Probe that does not wait: found says whether there is a message.
func TryProbe[T any](ctx context.Context, c *Comm, from, tag int) (s Status, found bool, err error) {
	return peek[T](ctx, c, from, tag, false)
}

func peek[T any](ctx context.Context, c *Comm, from, tag int, wait bool) (Status, bool, error) {
	m, err := mailer[T](c, "probe", from, tag)
	if err != nil {
		return Status{}, false, err
	}
	e, found, err := m.Probe(ctx, c.source(from), transport.Match{Context: c.context, Tag: tag}, wait)
	if err != nil {
		return Status{}, false, c.failed("probe", err)
	}
	if !found {
		return Status{}, false, nil
	}
	return status[T](c, e), true, nil
}

// StartSend is [Send] that returns at once. Src is left alone until the request
// is done.
func StartSend[T any](ctx context.Context, c *Comm, src []T, to, tag int) *Request {
	return begin(func() error { return Send(ctx, c, src, to, tag) })
}

// A Receipt is a message that is being received.
type Receipt struct {
	*Request
	status Status
}

// Status returns what was received, once the request is done.
func (r *Receipt) Status() Status {
	<-r.done
	return r.status
}

// StartRecv is [Recv] that returns at once. Dst is left alone until the request
// is done. Receives that could take the same message take one each, in no
// order.
func StartRecv[T any](ctx context.Context, c *Comm, dst []T, from, tag int) *Receipt {
	if from == InTurn {
		from = c.nextInTurn(tag)
	}
	r := &Receipt{}
	r.Request = begin(func() (err error) {
		r.status, err = Recv(ctx, c, dst, from, tag)
		return err
	})
	return r
}

// begin calls f in a goroutine.
func begin(f func() error) *Request {
	r := &Request{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = f()
	}()
	return r
}

// mailer returns what carries the message of a call, or what is wrong with the
// call.
func mailer[T any](c *Comm, call string, peer, tag int) (transport.Messenger, error) {
	receives := call != "send"
	switch {
	case (peer < 0 || peer >= c.size) && !(receives && peer == AnyRank):
		return nil, c.wrong(call, "no rank %d: want 0 to %d", peer, c.size-1)
	case tag < 0 && !(receives && tag == AnyTag):
		return nil, c.wrong(call, "tag %d: want 0 or more", tag)
	}
	if err := checkElement(reflect.TypeFor[T]()); err != nil {
		return nil, c.wrong(call, "%w", err)
	}
	return c.job.endpoint, nil
}

// source returns the job's rank, or Any, to look for a message from.
func (c *Comm) source(from int) int {
	if from == AnyRank {
		return transport.Any
	}
	return c.member(from)
}

// nextInTurn returns the rank whose turn it is, and passes the turn on.
func (c *Comm) nextInTurn(tag int) int {
	c.job.mu.Lock()
	defer c.job.mu.Unlock()
	if c.turns == nil {
		c.turns = make(map[int]int)
	}
	next := c.turns[tag]
	if next == c.rank && c.size > 1 {
		next = (next + 1) % c.size
	}
	c.turns[tag] = (next + 1) % c.size
	return next
}

// keepTurn gives a turn back that brought no message.
func (c *Comm) keepTurn(tag, rank int) {
	c.job.mu.Lock()
	defer c.job.mu.Unlock()
	if c.turns[tag] == (rank+1)%c.size {
		c.turns[tag] = rank
	}
}

func status[T any](c *Comm, e transport.MessageInfo) Status {
	size := max(1, int(unsafe.Sizeof(*new(T))))
	return Status{From: c.rankOf(e.From), Tag: e.Tag, Count: e.Size / size}
}

// rankOf is the inverse of member.
func (c *Comm) rankOf(member int) int {
	if c.members == nil {
		return member
	}
	for rank, m := range c.members {
		if m == member {
			return rank
		}
	}
	return -1
}
