package mailbox

const (
	// ShortMost is the longest letter that is copied when it is posted.
	ShortMost = 64 << 10
	// unreadMost is how many bytes of one sender's short letters may be under
	// way or lie in a mailbox. Beyond, its letters are lent as long ones are.
	unreadMost = 1 << 20
	// letterCost is what a letter counts for beside its contents.
	letterCost = 64
	// creditStep is how much taken letters cost before their sender is told.
	creditStep = unreadMost / 4
)

// An Account is what one rank knows of the short letters between it and another.
type Account struct {
	untaken int // what those cost that the other may not have taken
	taken   int // what those of the other cost that were taken, unknown to it
}

// Charge reports whether another letter may be copied, so many bytes long, and
// counts it if so.
func (a *Account) Charge(size int) bool {
	cost := size + letterCost
	if a.untaken+cost > unreadMost {
		return false
	}
	a.untaken += cost
	return true
}

// Refund takes back what a letter has cost that is lent after all.
func (a *Account) Refund(size int) { a.Repay(size + letterCost) }

// Repay notes that the other has taken letters that cost so much.
func (a *Account) Repay(cost int) { a.untaken -= min(a.untaken, cost) }

// Owe notes that letters of the other that cost so much are taken. It returns how
// much the other is to be told of now; mostly that is nothing, since it is told
// seldom.
func (a *Account) Owe(cost int) (due int) {
	if a.taken += cost; a.taken >= creditStep {
		due, a.taken = a.taken, 0
	}
	return due
}
