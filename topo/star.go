package topo

// A Star links every processor to one switch, a crossbar. Diameter 2, p links.
// Each processor of the smaller half loses its link when the star is halved,
// so the bisection width is ⌊p/2⌋.
//
// The textbook's star has a processor at its center, and the textbook counts
// the one link that cuts a vertex off.
type Star struct{ p int }

// NewStar returns the star of p processors around the switch "s".
func NewStar(p int) (*Star, error) {
	if err := checkProcessors("star", p); err != nil {
		return nil, err
	}
	if err := checkLinks("star", 2*float64(p)); err != nil {
		return nil, err
	}
	return &Star{p}, nil
}

// String returns "star".
func (s *Star) String() string { return "star" }

// Processors returns p.
func (s *Star) Processors() int { return s.p }

// Switches returns 1.
func (s *Star) Switches() int { return 1 }

// LinkCount returns p.
func (s *Star) LinkCount() int { return s.p }

// Bisection returns ⌊p/2⌋.
func (s *Star) Bisection() (int, bool) { return s.p / 2, true }

// Ports returns 1.
func (s *Star) Ports() int { return 1 }

// Diameter returns 2, or 0 for one processor.
func (s *Star) Diameter() int {
	if s.p == 1 {
		return 0
	}
	return 2
}

// AppendRoute appends the link to the switch and the link from it.
func (s *Star) AppendRoute(dst []int32, from, to int) []int32 {
	if from == to {
		return dst
	}
	return append(dst, int32(2*from), int32(2*to+1))
}

// Ends returns a processor and the switch, in the direction of the link.
func (s *Star) Ends(link int) (from, to int) {
	if link%2 == 1 {
		return s.p, link / 2
	}
	return link / 2, s.p
}

// Name returns a processor's number, or "s" for the switch.
func (s *Star) Name(v int) string {
	if v == s.p {
		return "s"
	}
	return numbered(v)
}
