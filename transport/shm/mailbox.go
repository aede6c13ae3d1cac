package shm

import (
	"slices"

	"github.com/chorale-go/chorale/transport"
)

const (
	// letterMost is the longest letter that is copied when it is posted, where a
	// box takes it with its type.
	letterMost = 64 << 10
	// unreadMost is how many bytes of one sender's short letters may be under
	// way or lie in a mailbox. Beyond, its letters are lent as long ones are.
	unreadMost = 1 << 20
	// letterCost is what a letter counts for beside its contents.
	letterCost = 64
	// sparesMost is how many letters an endpoint keeps for their memory.
	sparesMost = 8
)

// A mailbox holds the letters that nobody has taken yet, as they came. The
// endpoint's lock guards it.
type mailbox struct {
	letters []*letter
	own     int       // what short letters of this rank to itself cost
	spare   []*letter // short ones that are read, for their memory
}

// A letter is one to this rank. Its contents are here, or its sender lends
// them: it keeps them until the letter is taken.
type letter struct {
	transport.Envelope
	context uint32
	link    *link  // that it came over; nil if this rank posted it
	lent    bool   // the contents are not copied
	number  uint32 // of a letter that another rank lends
	data    []byte // the contents; of such a letter, where they go
	got     int    // bytes of data that have come
	op      *op    // of the sender if this rank lends it; else of the taker
}

// A search is for a letter with a stamp from a rank, or any.
type search struct {
	from  int
	stamp transport.Stamp
}

func (s search) finds(m *letter) bool {
	return m.context == s.stamp.Context &&
		(s.from == transport.Any || m.From == s.from) &&
		(s.stamp.Tag == transport.Any || m.Tag == s.stamp.Tag)
}

// first returns the first letter that s finds, or nil.
func (b *mailbox) first(s search) *letter {
	if i := slices.IndexFunc(b.letters, s.finds); i >= 0 {
		return b.letters[i]
	}
	return nil
}

// remove takes a letter out, and reports whether it was there.
func (b *mailbox) remove(m *letter) bool {
	i := slices.Index(b.letters, m)
	if i < 0 {
		return false
	}
	b.letters = slices.Delete(b.letters, i, i+1)
	return true
}

// deliver puts a letter into the mailbox and wakes those who look for it.
func (e *Endpoint) deliver(m *letter) {
	e.mail.letters = append(e.mail.letters, m)
	for _, o := range e.ops {
		if o.seeks && o.search.finds(m) {
			o.finish(nil)
		}
	}
}

// spent notes that a short letter is out of the mailbox. Its sender may post
// more then.
func (e *Endpoint) spent(m *letter) {
	cost := m.Size + letterCost
	if m.link == nil {
		e.mail.own -= cost
	} else {
		m.link.credit(cost)
	}
	if len(e.mail.spare) < sparesMost {
		e.mail.spare = append(e.mail.spare, m)
	}
}

// blank returns a short letter without contents.
func (b *mailbox) blank(size int) *letter {
	var m *letter
	if n := len(b.spare); n > 0 {
		m, b.spare = b.spare[n-1], b.spare[:n-1]
		*m = letter{data: m.data}
	} else {
		m = new(letter)
	}
	if cap(m.data) < size {
		m.data = make([]byte, size)
	}
	m.data = m.data[:size]
	return m
}

// discard drops the letters of a context whose senders do not wait for it.
func (e *Endpoint) discard(context uint32) {
	var gone []*letter
	e.mail.letters = slices.DeleteFunc(e.mail.letters, func(m *letter) bool {
		if m.context != context || m.lent {
			return false
		}
		gone = append(gone, m)
		return true
	})
	for _, m := range gone {
		e.spent(m)
	}
}
