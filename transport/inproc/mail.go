package inproc

import (
	"context"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

const (
	// shortLetter is the longest letter that is copied when it is posted.
	shortLetter = 64 << 10
	// unreadMost is how many bytes of one sender's short letters a mailbox
	// keeps. Beyond, its letters are lent as long ones are.
	unreadMost = 1 << 20
)

var _ transport.Messenger = (*Endpoint)(nil)

// A mailbox holds the letters to one rank that nobody has taken yet.
type mailbox struct {
	mu      sync.Mutex
	letters []*letter // as they came
	unread  map[int]int
	changed chan struct{} // closed when something has changed; nil while nobody waits
}

// A letter is copied, or lent: its sender waits until it is taken.
type letter struct {
	transport.MessageInfo
	context uint32
	data    []byte
	taken   chan struct{} // closed when it is; nil if it was copied
}

func (l *letter) matches(from int, stamp transport.Match) bool {
	return l.context == stamp.Context &&
		(from == transport.Any || l.From == from) &&
		(stamp.Tag == transport.Any || l.Tag == stamp.Tag)
}

// Send implements [transport.Messenger].
func (e *Endpoint) Send(ctx context.Context, to int, stamp transport.Match, kind string, data []byte) error {
	if err := e.able(ctx, to); err != nil {
		return err
	}
	l := &letter{
		MessageInfo: transport.MessageInfo{From: e.rank, Tag: stamp.Tag, Size: len(data), Type: kind},
		context:     stamp.Context,
		data:        data,
	}
	box := &e.job.ends[to].mail
	box.put(l)
	if l.taken == nil {
		return nil
	}
	err := e.await(ctx, func() (bool, error) {
		select {
		case <-l.taken:
			return true, nil
		default:
			return false, e.ended(to)
		}
	})
	if err != nil && !box.withdraw(l) {
		<-l.taken // it is being copied
		return nil
	}
	return err
}

// Recv implements [transport.Messenger].
func (e *Endpoint) Recv(ctx context.Context, from int, stamp transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	l, err := e.find(ctx, from, stamp, true, func(l *letter) (take bool, err error) {
		switch {
		case l.Type != kind:
			return false, &transport.TypeError{Peer: l.From, Got: l.Type, Want: kind}
		case l.Size > len(into):
			return false, &transport.SizeError{Peer: l.From, Got: l.Size, Want: len(into)}
		}
		return true, nil
	})
	if l == nil {
		return transport.MessageInfo{}, err
	}
	if err == nil {
		copy(into, l.data)
		if l.taken != nil {
			close(l.taken)
			e.job.ends[l.From].mail.wake()
		}
	}
	return l.MessageInfo, err
}

// Probe implements [transport.Messenger].
func (e *Endpoint) Probe(ctx context.Context, from int, stamp transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	l, err := e.find(ctx, from, stamp, wait, func(*letter) (bool, error) { return false, nil })
	if l == nil {
		return transport.MessageInfo{}, false, err
	}
	return l.MessageInfo, true, err
}

// find looks for the first letter that matches, and waits for one if it is to.
// Inspect says whether to take it out of the mailbox.
func (e *Endpoint) find(ctx context.Context, from int, stamp transport.Match, wait bool, inspect func(*letter) (bool, error)) (found *letter, err error) {
	if from != transport.Any && (from < 0 || from >= len(e.job.ends)) {
		return nil, &transport.RankError{Peer: from, Rank: e.rank, Size: len(e.job.ends)}
	}
	if failed := e.failed.Load(); failed != nil {
		return nil, *failed
	}
	err = e.await(ctx, func() (bool, error) {
		// Who ends has posted before: look for its end first, then for letters.
		end := e.ended(from)
		if found, err = e.mail.look(from, stamp, inspect); found != nil {
			return true, err
		}
		return !wait, end
	})
	return found, err
}

// able returns why this endpoint cannot post to a rank, or nil.
func (e *Endpoint) able(ctx context.Context, to int) error {
	if to < 0 || to >= len(e.job.ends) {
		return &transport.RankError{Peer: to, Rank: e.rank, Size: len(e.job.ends)}
	}
	if failed := e.failed.Load(); failed != nil {
		return *failed
	}
	if err := e.ended(to); err != nil {
		return err
	}
	return transport.Cause(ctx)
}

// ended returns the error of a call that waits for a rank, or for any, if the
// part of that rank or of this one has ended.
func (e *Endpoint) ended(peer int) error {
	j := e.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if failed := e.failed.Load(); failed != nil {
		return *failed
	}
	if peer != transport.Any {
		if last := j.ends[peer].last; last != nil {
			return last
		}
		return nil
	}
	if n := len(j.ends); n > 1 && j.endings == n-1 {
		return &transport.PeerError{Peer: (e.rank + 1) % n, Err: transport.ErrLeft, Reason: "so have all others"}
	}
	return nil
}

// await calls look until it says that it is done or fails, and sleeps in
// between until a letter has come, one was taken, or a rank has ended.
func (e *Endpoint) await(ctx context.Context, look func() (done bool, err error)) error {
	e.job.waits(e, 1)
	defer e.job.waits(e, -1)
	for {
		changed := e.mail.change()
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return transport.Cause(ctx)
		}
	}
}

// waits counts the calls of an endpoint that wait for letters, so that who ends
// knows whom to tell.
func (j *Job) waits(e *Endpoint, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == nil {
		j.waiting = make(map[*Endpoint]int)
	}
	if j.waiting[e] += n; j.waiting[e] == 0 {
		delete(j.waiting, e)
	}
}

// put adds a letter, copied if it may be.
func (b *mailbox) put(l *letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Size <= shortLetter && b.unread[l.From]+l.Size <= unreadMost {
		if b.unread == nil {
			b.unread = make(map[int]int)
		}
		b.unread[l.From] += l.Size
		l.data = append([]byte(nil), l.data...)
	} else {
		l.taken = make(chan struct{})
	}
	b.letters = append(b.letters, l)
	b.tell()
}

// withdraw takes back a letter that nobody has taken.
func (b *mailbox) withdraw(l *letter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.letters, l)
	if i < 0 {
		return false
	}
	b.letters = slices.Delete(b.letters, i, i+1)
	return true
}

// look returns the first letter that matches. If inspect says so, it is taken
// out.
func (b *mailbox) look(from int, stamp transport.Match, inspect func(*letter) (bool, error)) (*letter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.letters, func(l *letter) bool { return l.matches(from, stamp) })
	if i < 0 {
		return nil, nil
	}
	l := b.letters[i]
	take, err := inspect(l)
	if take {
		b.letters = slices.Delete(b.letters, i, i+1)
		if l.taken == nil {
			b.unread[l.From] -= l.Size
		}
	}
	return l, err
}

// change returns a channel that is closed at the next change.
func (b *mailbox) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// tell says to who waits that something has changed.
func (b *mailbox) tell() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// wake is tell for who does not hold the mailbox.
func (b *mailbox) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell()
}
