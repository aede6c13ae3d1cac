package mailbox

import (
	"context"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// A quiet endpoint brings nothing.
type quiet struct{ Keeper }

func (quiet) Ended() error       { return nil }
func (quiet) Deserted(int) error { return nil }
func (quiet) Glance(int, bool)   {}
func (quiet) Found(*Letter)      {}

// A paid link counts what is credited.
type paid struct {
	Link
	credit int
}

func (p *paid) Credit(cost int) { p.credit += cost }

func TestAContextThatIsDiscardedLeavesOnlyWhatIsLent(t *testing.T) {
	b := New(quiet{}, 0, 2)
	from := new(paid)
	for context := range uint32(2) {
		for _, lent := range []bool{false, true} {
			m := b.Blank(100)
			m.MessageInfo, m.Context, m.Link, m.Lent = transport.MessageInfo{From: 1, Size: 100}, context, from, lent
			b.Deliver(m)
		}
	}
	b.Discard(1)
	for i, lent := range []bool{false, true} {
		m, err := b.Find(context.Background(), Search{From: 1, Stamp: transport.Match{Context: uint32(i)}}, false)
		if err != nil || m == nil || m.Lent != lent {
			t.Errorf("context %d: the first letter is %+v, %v", i, m, err)
		}
	}
	if want := 100 + letterCost; from.credit != want {
		t.Errorf("the sender has %d credited, want %d", from.credit, want)
	}
}

func TestWhatNobodyTakesIsBounded(t *testing.T) {
	var a Account
	const size = ShortMost - letterCost // so that a whole number of them is the bound
	for i := range unreadMost / ShortMost {
		if !a.Charge(size) {
			t.Fatalf("letter %d is not taken in", i)
		}
	}
	if a.Charge(0) {
		t.Error("a letter is taken in beyond the bound")
	}
	a.Repay(letterCost)
	if a.Charge(1) || !a.Charge(0) {
		t.Error("what is repaid is not what may be charged again")
	}
}

func TestASenderIsToldInSteps(t *testing.T) {
	var mine, theirs Account
	for i := 0; mine.Charge(i % ShortMost); i += 1000 {
		if due := theirs.Owe(i%ShortMost + letterCost); due > 0 {
			mine.Repay(due)
		}
		if mine.untaken > creditStep+ShortMost {
			t.Fatalf("all are taken, and %d bytes are not known to be", mine.untaken)
		}
		if i > 100*unreadMost {
			return
		}
	}
	t.Error("all are taken, and no more may be posted")
}
