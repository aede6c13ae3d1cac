// Package mailbox keeps the letters to one rank that nobody has taken yet, for
// the endpoints of processes.
//
// An endpoint brings letters in ([Box.Deliver]) in frames of its own, and is
// asked to wait for more where there is none ([Keeper]). Which letter is taken,
// when its sender is done with it, and how much may lie here unread is decided
// in this package.
//
// A short letter is copied when it is posted, and is all here when it is
// delivered. A long one is lent: its sender keeps it, and it is fetched by who
// takes it.
//
// A mailbox has no lock: that of its endpoint guards it, and is held wherever
// the two call each other.
package mailbox

import (
	"context"
	"errors"
	"slices"

	"github.com/chorale-go/chorale/transport"
)

// ErrWithdrawn says that a letter was withdrawn by its sender before it came.
var ErrWithdrawn = errors.New("the letter was withdrawn")

// sparesMost is how many letters a mailbox keeps for their memory.
const sparesMost = 8

// A Box is the mailbox of one rank.
type Box struct {
	keeper     Keeper
	rank, size int
	letters    []*Letter // as they came
	awaited    []*Letter // those that are being fetched
	own        Account   // of this rank with itself
	spare      []*Letter // short ones that are read, for their memory
}

// New returns an empty mailbox of a rank of a job of some size.
func New(keeper Keeper, rank, size int) *Box {
	return &Box{keeper: keeper, rank: rank, size: size}
}

// A Letter is one to this rank. Its contents are here, or its sender lends
// them: it keeps them until the letter is taken.
type Letter struct {
	transport.MessageInfo
	Context uint32
	Link    Link        // that it came over; nil if this rank posted it
	Lent    bool        // the contents are not copied
	Number  uint32      // of a letter that another rank lends
	Data    []byte      // the contents; of such a letter, where they go
	Got     int         // bytes of Data that have come
	Done    func(error) // ends the waiting for it: of its sender if this rank lends it, else of its taker
}

// A Link is the way to the sender of a letter.
type Link interface {
	// Credit notes that short letters of the sender that cost so much are out
	// of the mailbox. It may post more then.
	Credit(cost int)
	// Fetch has the sender send a letter that it lends, and returns when the
	// letter is here, or why it does not come.
	Fetch(ctx context.Context, m *Letter) error
}

// A Search is for a letter with a stamp from a rank, or any.
type Search struct {
	From  int
	Stamp transport.Match
}

// Finds reports whether the search is for such a letter.
func (s *Search) Finds(m *Letter) bool {
	return m.Context == s.Stamp.Context &&
		(s.From == transport.Any || m.From == s.From) &&
		(s.Stamp.Tag == transport.Any || m.Tag == s.Stamp.Tag)
}

// Blank returns a short letter of which nothing is written yet, so many bytes
// long.
func (b *Box) Blank(size int) *Letter {
	var m *Letter
	if n := len(b.spare); n > 0 {
		m, b.spare = b.spare[n-1], b.spare[:n-1]
		*m = Letter{Data: m.Data}
	} else {
		m = new(Letter)
	}
	if cap(m.Data) < size {
		m.Data = make([]byte, size)
	}
	m.Data = m.Data[:size]
	return m
}

// Deliver puts a letter into the mailbox, for those who look for it.
func (b *Box) Deliver(m *Letter) {
	b.letters = append(b.letters, m)
	b.keeper.Found(m)
}

// Awaited returns the letter of that number that is being fetched from a rank, or
// nil.
func (b *Box) Awaited(from int, number uint32) *Letter {
	for _, m := range b.awaited {
		if m.From == from && m.Number == number {
			return m
		}
	}
	return nil
}

// Withdraw drops a letter that a rank lends no more.
func (b *Box) Withdraw(from int, number uint32) {
	b.letters = slices.DeleteFunc(b.letters, func(m *Letter) bool {
		return m.Lent && m.From == from && m.Number == number
	})
	if m := b.Awaited(from, number); m != nil {
		m.Done(ErrWithdrawn)
	}
}

// Lose drops the letters that a rank lends, since it is gone.
func (b *Box) Lose(from int) {
	b.letters = slices.DeleteFunc(b.letters, func(m *Letter) bool { return m.Lent && m.From == from })
}

// Discard drops the letters of a context whose senders do not wait for it.
func (b *Box) Discard(context uint32) {
	var gone []*Letter
	b.letters = slices.DeleteFunc(b.letters, func(m *Letter) bool {
		if m.Context != context || m.Lent {
			return false
		}
		gone = append(gone, m)
		return true
	})
	for _, m := range gone {
		b.spent(m)
	}
}

// first returns the first letter that s finds, or nil.
func (b *Box) first(s *Search) *Letter {
	for _, m := range b.letters {
		if s.Finds(m) {
			return m
		}
	}
	return nil
}

// remove takes a letter out if it is there.
func (b *Box) remove(m *Letter) {
	if i := slices.Index(b.letters, m); i >= 0 {
		n := i + copy(b.letters[i:], b.letters[i+1:])
		b.letters[n] = nil
		b.letters = b.letters[:n]
	}
}

// spent notes that a short letter is out of the mailbox. What Credit brings in
// must not be written over it.
func (b *Box) spent(m *Letter) {
	cost := m.Size + letterCost
	if m.Link == nil {
		b.own.Repay(cost)
	} else {
		m.Link.Credit(cost)
	}
	if len(b.spare) < sparesMost {
		b.spare = append(b.spare, m)
	}
}
