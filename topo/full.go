package topo

// Full is the network with a link between every two processors. Diameter 1,
// bisection width ⌊p/2⌋⌈p/2⌉, which is p²/4 for even p, and p(p−1)/2 links.
//
// The directed links of processor v have the ids from v·(p−1) on, in the order
// of their other ends.
type Full struct{ p int }

// NewFull returns the fully connected network of p processors, at most 46,341,
// which is as many as ids can number the links of.
func NewFull(p int) (*Full, error) {
	if err := checkProcessors("full", p); err != nil {
		return nil, err
	}
	if err := checkLinks("full", float64(p)*float64(p-1)); err != nil {
		return nil, err
	}
	return &Full{p}, nil
}

// String returns "full".
func (f *Full) String() string { return "full" }

// Processors returns p.
func (f *Full) Processors() int { return f.p }

// Switches returns 0.
func (f *Full) Switches() int { return 0 }

// LinkCount returns p(p−1)/2.
func (f *Full) LinkCount() int { return f.p * (f.p - 1) / 2 }

// Diameter returns 1, or 0 for one processor.
func (f *Full) Diameter() int { return min(f.p-1, 1) }

// Bisection returns ⌊p/2⌋⌈p/2⌉.
func (f *Full) Bisection() (int, bool) { return f.p / 2 * ((f.p + 1) / 2), true }

// Ports returns p−1.
func (f *Full) Ports() int { return f.p - 1 }

// AppendRoute appends the link from one processor to the other.
func (f *Full) AppendRoute(dst []int32, from, to int) []int32 {
	link := from*(f.p-1) + to
	switch {
	case to == from:
		return dst
	case to > from:
		link--
	}
	return append(dst, int32(link))
}

// Ends returns the two processors that a directed link joins.
func (f *Full) Ends(link int) (from, to int) {
	from, to = link/(f.p-1), link%(f.p-1)
	if to >= from {
		to++
	}
	return from, to
}

// Name returns a processor's number.
func (f *Full) Name(v int) string { return numbered(v) }
