package chorale

import "slices"

// turns is the order in which RoundRobin receives messages of one tag.
type turns struct {
	next     int
	returned []int // ranks whose receive has failed; they come first
}

// takeTurn returns the rank that RoundRobin receives from next.
func (c *Comm) takeTurn(tag int) int {
	c.job.mu.Lock()
	defer c.job.mu.Unlock()
	t := c.turns[tag]
	if t == nil {
		if c.turns == nil {
			c.turns = make(map[int]*turns)
		}
		t = new(turns)
		c.turns[tag] = t
	}
	rank := 0
	if len(t.returned) > 0 {
		rank = t.returned[0]
		t.returned = slices.Delete(t.returned, 0, 1)
	} else {
		if t.next == c.rank {
			t.next = (t.next + 1) % c.size
		}
		rank, t.next = t.next, (t.next+1)%c.size
	}
	complete := t.next == 0 || t.next == c.rank && t.next == c.size-1
	if complete && len(t.returned) == 0 {
		delete(c.turns, tag) // as it began: a tag whose rounds are complete costs nothing
	}
	return rank
}

// returnTurn gives the turn of a receive that has failed to the next receive.
func (c *Comm) returnTurn(tag, rank int) {
	c.job.mu.Lock()
	defer c.job.mu.Unlock()
	t := c.turns[tag]
	if t == nil {
		t = new(turns)
		c.turns[tag] = t
	}
	before := func(rank int) int { return (t.next - 1 - rank + c.size) % c.size } // how long ago its turn was
	i := 0
	for i < len(t.returned) && before(t.returned[i]) >= before(rank) {
		i++
	}
	t.returned = slices.Insert(t.returned, i, rank)
}
