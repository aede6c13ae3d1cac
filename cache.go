package chorale

import "sync/atomic"

const (
	// KeptCalls is how many compiled calls a communicator caches.
	KeptCalls = 256
	// KeptBytes is how many bytes the programs of the cached calls take, unless one
	// program alone takes more.
	KeptBytes = 16 << 20
)

// A callCache holds the calls that a communicator has compiled. If it is full, it
// drops the calls that were compiled first, except those that were made last.
type callCache struct {
	calls  map[callKey]*call
	queue  []*call   // in the order of compilation
	bytes  int       // of the programs
	recent [16]*call // the last call of each cache slot: see slot
	kept   *keptCounts
}

// keptCounts counts what a communicator keeps, with its nonblocking and prepared calls.
type keptCounts struct{ calls, programs, memory atomic.Int64 }

// find returns the compiled call of a key and counts, or nil.
func (c *callCache) find(key *callKey, counts *partCounts) *call {
	recent := c.slot(key)
	if call := *recent; call != nil && call.is(key, counts) {
		return call
	}
	if call := c.calls[*key]; call != nil && call.counts.equal(*counts) {
		*recent = call
		return call
	}
	return nil
}

// slot returns the cache slot of a key, by its collective and root. A lookup there
// takes a seventh of the time of one in the map.
func (c *callCache) slot(key *callKey) **call {
	return &c.recent[uint(int(key.collective)*5+key.root)%uint(len(c.recent))]
}

// add caches a call, and drops others until it has room.
func (c *callCache) add(added *call) {
	if c.calls == nil {
		c.calls = make(map[callKey]*call)
	}
	if same := c.calls[added.key]; same != nil { // of other counts with the same digest
		c.drop(same)
	}
	for spared := 0; len(c.queue) > 0 && (len(c.queue) == KeptCalls || c.bytes+added.size > KeptBytes); {
		oldest := c.queue[0]
		if *c.slot(&oldest.key) == oldest && spared < len(c.recent) {
			copy(c.queue, c.queue[1:])
			c.queue[len(c.queue)-1] = oldest
			spared++
			continue
		}
		c.drop(oldest)
	}
	c.calls[added.key] = added
	c.queue = append(c.queue, added)
	*c.slot(&added.key) = added
	c.count(1, added.size)
}

// drop removes a call.
func (c *callCache) drop(dropped *call) {
	for i, call := range c.queue {
		if call == dropped {
			copy(c.queue[i:], c.queue[i+1:])
			c.queue[len(c.queue)-1] = nil
			c.queue = c.queue[:len(c.queue)-1]
			break
		}
	}
	delete(c.calls, dropped.key)
	if slot := c.slot(&dropped.key); *slot == dropped {
		*slot = nil
	}
	c.count(-1, -dropped.size)
}

// clear drops all calls.
func (c *callCache) clear() {
	c.count(-len(c.queue), -c.bytes)
	*c = callCache{kept: c.kept}
}

func (c *callCache) count(calls, bytes int) {
	c.bytes += bytes
	c.kept.calls.Add(int64(calls))
	c.kept.programs.Add(int64(bytes))
}
