package mailbox

import (
	"context"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// A Keeper is the endpoint that a mailbox belongs to. Seek, Hold and the Fetch of
// a [Link] give away its lock while they wait, and return early when ctx or the
// endpoint's part in the job ends.
type Keeper interface {
	// Ended returns why the endpoint's part in the job has ended, or nil.
	Ended() error

	// Glance takes what has come from a rank, or from any, without waiting. If
	// wait is set, Seek comes next where that brings no letter; what that does
	// first anyhow need not be done twice.
	Glance(from int, wait bool)

	// Deserted returns why no letter comes any more from a rank, or nil. From
	// any, that is when one is lost or gave up, or all have left.
	Deserted(from int) error

	// Seek returns when a letter was found that it is for, or when something
	// else makes it worth while to look again.
	Seek(ctx context.Context, s Search) error

	// Found ends every Seek for such a letter.
	Found(m *Letter)

	// Hold sets the Done of a letter that this rank lends to itself, and
	// returns when it is called.
	Hold(ctx context.Context, m *Letter) error
}

// Blocked returns why nothing can be posted to a rank, or nil.
func (b *Box) Blocked(ctx context.Context, to int) error {
	if to < 0 || to >= b.size {
		return &transport.RankError{Peer: to, Rank: b.rank, Size: b.size}
	}
	if err := b.keeper.Ended(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return transport.Cause(ctx)
	}
	return nil
}

// Post puts a letter of this rank to itself into the mailbox.
func (b *Box) Post(ctx context.Context, stamp transport.Match, kind string, data []byte) error {
	envelope := transport.MessageInfo{From: b.rank, Tag: stamp.Tag, Size: len(data), Type: kind}
	if len(data) <= ShortMost && b.own.Charge(len(data)) {
		m := b.Blank(len(data))
		m.MessageInfo, m.Context = envelope, stamp.Context
		copy(m.Data, data)
		b.Deliver(m)
		return nil
	}
	m := &Letter{MessageInfo: envelope, Context: stamp.Context, Data: data, Lent: true}
	b.Deliver(m)
	err := b.keeper.Hold(ctx, m)
	if err != nil {
		b.remove(m)
	}
	return err
}

// Take waits for a letter, takes it out and copies it to the beginning of into,
// or says why it does not, as [transport.Messenger] tells. The letter that it
// returns, if any, may be written again when the lock is given away.
func (b *Box) Take(ctx context.Context, s Search, kind string, into []byte) (*Letter, error) {
	for {
		m, err := b.Find(ctx, s, true)
		switch {
		case err != nil:
			return nil, err
		case m.Type != kind:
			return m, &transport.TypeError{Peer: m.From, Got: m.Type, Want: kind}
		case m.Size > len(into):
			return m, &transport.SizeError{Peer: m.From, Got: m.Size, Want: len(into)}
		case m.Lent && ctx.Err() != nil:
			return nil, transport.Cause(ctx)
		}
		b.remove(m)
		switch {
		case !m.Lent:
			copy(into, m.Data)
			b.spent(m)
			return m, nil
		case m.Link == nil:
			copy(into, m.Data)
			m.Done(nil)
			return m, nil
		}
		if err := b.fetch(ctx, m, into[:m.Size]); err != ErrWithdrawn {
			return m, err
		}
	}
}

// fetch has another rank send a letter that it lends.
func (b *Box) fetch(ctx context.Context, m *Letter, into []byte) error {
	m.Data = into
	b.awaited = append(b.awaited, m)
	err := m.Link.Fetch(ctx, m)
	b.awaited = slices.DeleteFunc(b.awaited, func(other *Letter) bool { return other == m })
	return err
}

// Find looks for a letter, and waits for one if it is to. It leaves the letter
// in the mailbox. Without an error there is none only where it does not wait.
func (b *Box) Find(ctx context.Context, s Search, wait bool) (*Letter, error) {
	if s.From != transport.Any && (s.From < 0 || s.From >= b.size) {
		return nil, &transport.RankError{Peer: s.From, Rank: b.rank, Size: b.size}
	}
	for looked := false; ; {
		if err := b.keeper.Ended(); err != nil {
			return nil, err
		}
		if m := b.first(&s); m != nil {
			return m, nil
		}
		if !looked { // who has left may have posted before
			b.keeper.Glance(s.From, wait)
			looked = true
			continue
		}
		if err := b.keeper.Deserted(s.From); err != nil {
			return nil, err
		}
		switch {
		case !wait:
			return nil, nil
		case ctx.Err() != nil:
			return nil, transport.Cause(ctx)
		}
		if err := b.keeper.Seek(ctx, s); err != nil {
			return nil, err
		}
		looked = false
	}
}
