package main

// far is how far two rounds are apart where a machine is said not to repeat a time.
const far = 0.5

// reason says why the simulated time of a cell is likely far from the measured one, as far as that is
// known.
func reason(c cell, shares bool) string {
	switch slower := c.ratio() > 1; {
	case c.spread() > far:
		return "the rounds are " + percent(c.spread()) + " apart"
	case slower && c.vector >= 1<<20 && buffers[c.Algorithm]:
		return "memory for its scratch blocks, which is new to the caches, or to the process"
	case shares && slower:
		return "a rank waits for its turn longer than simulated: the system's time slices are not"
	case shares:
		return "ranks take turns less often than simulated, or find the data in their cache"
	case slower:
		return "what a rank sends has just been written by it, and crosses from cache to cache"
	}
	return "what a rank sends has not changed since the call before, and is in both caches"
}

// buffers are algorithms that hold whole parts in scratch blocks.
var buffers = map[string]bool{"bruck": true, "rotated": true, "circulant": true, "mesh": true, "hypercube": true, "ring": true}
