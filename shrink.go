package chorale

import (
	"context"
	"math/bits"
	"slices"

	"github.com/chorale-go/chorale/internal/agreement"
)

// Shrink returns a communicator of the ranks of c that are not lost, in the order of their
// ranks in c. All of them call it, and all get the same one, although others are lost before
// or meanwhile. C may have failed, and Shrink does not make it work again; c may also be
// whole, and is left as it is. [Comm.Lost] says which ranks of c are not in it.
//
// If a rank is lost so late that it is counted in, the communicator has it, and fails as any
// other that has lost a rank, at the first call that notices it: Shrink it, or c, once more.
//
// To begin anew, the survivors free what they had, and make from the new communicator
// what they had made from the old one. A rank that finds out by itself that something has
// failed calls [Comm.Revoke] before it calls Shrink, so that no other rank goes on to wait
// for it on c.
//
// Shrink is one agreement or a few, and fails, costs and ends with ctx as [Comm.Agree]
// says. A rank whose ctx ends is in no communicator; where others have counted it in, theirs
// is revoked.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	a, err := c.beginAgreement(ctx, shrinkCall)
	if err != nil {
		return nil, err
	}
	defer a.end()
	s := search{parent: c}
	for range windows {
		made, err := a.shrink(ctx, s.window())
		if made != nil || err != nil {
			return made, err
		}
		s.tried++
	}
	return nil, c.argumentErrorf(a.call.String(), "%d communicators are in use: want less", 1<<numberBits)
}

// shrink makes a communicator with a number of a window, or returns nil if the ranks have
// none there. They agree at once on the ranks that are left, on the numbers that all of
// these can use, and on the number of the first call.
func (a *agreements) shrink(ctx context.Context, window uint32) (*Comm, error) {
	c, j := a.of, a.of.job
	var mine offer
	j.offer(&mine, window, &c.group)
	j.withdraw(window, mine.Free&^mine.Fresh) // which numbers can be used again, all ranks would have to find out
	v, err := a.run(ctx, agreement.Value{Flags: mine.Fresh, Number: mine.Base})
	if err != nil {
		return nil, err // the others may have made a communicator with one of the numbers
	}
	if v.Flags == 0 {
		j.withdraw(window, mine.Fresh)
		return nil, nil
	}
	number := 64*window + uint32(bits.TrailingZeros64(v.Flags))
	j.withdraw(window, mine.Fresh&^(1<<(number%64)))
	var ranks []int
	for rank := range c.size {
		if !slices.Contains(v.Lost, rank) {
			ranks = append(ranks, rank)
		}
	}
	made := j.newComm(c.subgroup(ranks), number, v.Number)
	for _, rank := range ranks {
		if why := c.resilience.withdrawn[rank]; why != nil {
			made.revoke(why)
		}
	}
	return made, nil
}
