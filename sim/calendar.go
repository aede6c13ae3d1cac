package sim

import "math"

// A heap is a binary heap: pop returns the least element.
type heap []float64

func (h *heap) push(x float64) {
	*h = append(*h, x)
	items := *h
	for i := len(items) - 1; i > 0; {
		up := (i - 1) / 2
		if items[i] >= items[up] {
			break
		}
		items[i], items[up] = items[up], items[i]
		i = up
	}
}

func (h *heap) pop() float64 {
	items := *h
	first, n := items[0], len(items)-1
	items[0] = items[n]
	items = items[:n]
	*h = items
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < n; down++ {
			if items[down] < items[least] {
				least = down
			}
		}
		if least == i {
			return first
		}
		items[i], items[least] = items[least], items[i]
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
	arrival       kind = iota // a message has arrived
	transferStart             // a message's start-up is over, and its words begin to flow
	stepStart                 // a rank begins a step
	landing                   // the receiving part of a message may begin
	workEnd                   // a processor ends a piece of work
)

// A calendar holds events by time. Events of the same time, which are many in
// the simulation of a regular schedule, cost no more than an element of a list
// each.
type calendar struct {
	times heap                // those with an entry
	at    map[uint64]*[]event // by the bits of a time, which take less time to look up
	spare []*[]event

	last     *[]event // the entry that was added to last, and its time; nil if it is gone
	lastTime float64
}

func newCalendar() calendar { return calendar{at: make(map[uint64]*[]event)} }

func (c *calendar) add(time float64, e event) {
	if c.last != nil && time == c.lastTime {
		*c.last = append(*c.last, e)
		return
	}
	bits := math.Float64bits(time)
	list := c.at[bits]
	if list == nil {
		if n := len(c.spare); n > 0 {
			list, c.spare = c.spare[n-1], c.spare[:n-1]
		} else {
			list = new([]event)
		}
		c.at[bits] = list
		c.times.push(time)
	}
	*list = append(*list, e)
	c.last, c.lastTime = list, time
}

// first returns the time of the first events.
func (c *calendar) first() (time float64, any bool) {
	if len(c.times) == 0 {
		return 0, false
	}
	return c.times[0], true
}

// take removes the events up to and including a time, and appends them to a
// list.
func (c *calendar) take(to float64, events []event) []event {
	c.last = nil
	for time, any := c.first(); any && notAfter(time, to); time, any = c.first() {
		bits := math.Float64bits(c.times.pop())
		list := c.at[bits]
		delete(c.at, bits)
		events = append(events, *list...)
		*list = (*list)[:0]
		c.spare = append(c.spare, list)
	}
	return events
}

// notAfter reports whether a time has come. Times that differ by rounding alone
// are the same; otherwise the order of events would depend on the unit of time.
func notAfter(time, now float64) bool { return time <= now*(1+1e-12) }
