package trace

// A Ring keeps the last events of a rank, so many at most. It grows to that.
type Ring struct {
	max     int
	events  []Event
	next    int // the oldest one, when there are as many as can be
	dropped int64
}

// NewRing returns a ring of so many bytes.
func NewRing(bytes int) *Ring { return &Ring{max: max(1, bytes/EventBytes)} }

// Add adds an event, in the place of the oldest one if there is no room.
func (r *Ring) Add(e Event) {
	if len(r.events) < r.max {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.dropped++
	if r.next++; r.next == r.max {
		r.next = 0
	}
}

// Events returns the events that are kept, the oldest first, and how many are not. Steps of
// a call that is not kept are not, either.
func (r *Ring) Events() (kept []Event, dropped int64) {
	kept = append(append(kept, r.events[r.next:]...), r.events[:r.next]...)
	dropped = r.dropped
	for len(kept) > 0 && kept[0].Kind == Step {
		kept, dropped = kept[1:], dropped+1
	}
	return kept, dropped
}
