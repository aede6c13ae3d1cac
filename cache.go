package chorale

// KeptCalls is the number of different calls that a communicator caches.
const KeptCalls = 256

// A callCache holds the calls that a communicator has compiled.
type callCache struct {
	calls  map[callKey]*call
	kept   []*call // a ring, in the order of compilation
	oldest int
	recent [16]*call // the last call of each cache slot: see slot
}

func newCallCache() callCache { return callCache{calls: make(map[callKey]*call)} }

// find returns the compiled call of a key and counts, or nil.
func (c *callCache) find(key *callKey, counts *partCounts) *call {
	recent := c.slot(key)
	if call := *recent; call != nil && call.key == *key && call.counts.equal(*counts) {
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

// add caches a call. If the cache is full, the call replaces the oldest one.
func (c *callCache) add(compiled *call) {
	if len(c.kept) < KeptCalls {
		c.kept = append(c.kept, compiled)
	} else {
		if old := c.kept[c.oldest]; c.calls[old.key] == old {
			delete(c.calls, old.key)
		}
		c.kept[c.oldest] = compiled
		c.oldest = (c.oldest + 1) % KeptCalls
	}
	c.calls[compiled.key] = compiled
	*c.slot(&compiled.key) = compiled
}
