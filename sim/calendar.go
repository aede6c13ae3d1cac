package sim

// A pile gives back first what comes before all others: a binary heap.
type pile[T interface{ before(T) bool }] struct{ items []T }

func (p *pile[T]) push(x T) {
	p.items = append(p.items, x)
	for i := len(p.items) - 1; i > 0; {
		up := (i - 1) / 2
		if !p.items[i].before(p.items[up]) {
			break
		}
		p.items[i], p.items[up] = p.items[up], p.items[i]
		i = up
	}
}

func (p *pile[T]) pop() T {
	first, n := p.items[0], len(p.items)-1
	p.items[0] = p.items[n]
	p.items = p.items[:n]
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < n; down++ {
			if p.items[down].before(p.items[least]) {
				least = down
			}
		}
		if least == i {
			return first
		}
		p.items[i], p.items[least] = p.items[least], p.items[i]
		i = least
	}
}

// An event is something that happens to a message or a rank at a time.
type event struct {
	kind kind
	id   int32
}

type kind uint8

const (
	arrival   kind = iota // a message has arrived
	flowing               // a message's start-up is over, and its words begin to flow
	beginning             // a rank begins a step
)

// A calendar holds events by time. Where much happens at once, as it does in
// the simulation of a regular schedule, an event costs no more than a place in
// a list.
type calendar struct {
	times pile[moment] // those with an entry
	at    map[moment]*[]event
	spare []*[]event
	last  *[]event // what take has returned
}

type moment float64

func (m moment) before(o moment) bool { return m < o }

func newCalendar() calendar { return calendar{at: make(map[moment]*[]event)} }

func (c *calendar) add(time float64, e event) {
	list := c.at[moment(time)]
	if list == nil {
		if n := len(c.spare); n > 0 {
			list, c.spare = c.spare[n-1], c.spare[:n-1]
		} else {
			list = new([]event)
		}
		c.at[moment(time)] = list
		c.times.push(moment(time))
	}
	*list = append(*list, e)
}

// first returns the time of the first events.
func (c *calendar) first() (time float64, any bool) {
	if len(c.times.items) == 0 {
		return 0, false
	}
	return float64(c.times.items[0]), true
}

// take removes the events of a time if there are any, and it is the first. They
// are there until the next call.
func (c *calendar) take(time float64) []event {
	if c.last != nil {
		*c.last = (*c.last)[:0]
		c.spare = append(c.spare, c.last)
		c.last = nil
	}
	if at, any := c.first(); !any || at != time {
		return nil
	}
	c.last = c.at[c.times.pop()]
	delete(c.at, moment(time))
	return *c.last
}
