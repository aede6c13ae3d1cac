package mailbox

import "testing"

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
