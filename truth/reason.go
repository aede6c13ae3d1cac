package main

// reason says why the simulated time of a cell is far from the measured one, as far as that is
// known.
func reason(c cell, shares bool) string {
	switch slower := c.ratio() > 1; {
	case !c.Stable:
		return "the measurement is not stable"
	case shares && slower:
		return "a rank waits for its turn longer than simulated: the system's time slices are not"
	case shares:
		return "ranks take turns less often than simulated"
	case slower && c.vector >= 1<<20:
		return "buffers of several ranks do not fit the caches together"
	case slower:
		return "not known"
	}
	return "messages follow each other faster than simulated"
}
