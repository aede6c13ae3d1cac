package topo

// A Star links every processor to one switch, a crossbar. Diameter 2, p links.
// Each processor of the smaller half loses its link when the star is halved,
// so the bisection width is ⌊p/2⌋.
//
// The textbook's star has a processor in its middle, and it counts the one
// link that cuts a vertex off.
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

func (s *Star) String() string         { return "star" }
func (s *Star) Processors() int        { return s.p }
func (s *Star) Switches() int          { return 1 }
func (s *Star) LinkCount() int         { return s.p }
func (s *Star) Bisection() (int, bool) { return s.p / 2, true }
func (s *Star) Ports() int             { return 1 }

func (s *Star) Diameter() int {
	if s.p == 1 {
		return 0
	}
	return 2
}

func (s *Star) AppendRoute(dst []int32, from, to int) []int32 {
	if from == to {
		return dst
	}
	return append(dst, int32(2*from), int32(2*to+1))
}

func (s *Star) Ends(link int) (from, to int) {
	if link%2 == 1 {
		return s.p, link / 2
	}
	return link / 2, s.p
}

func (s *Star) Name(v int) string {
	if v == s.p {
		return "s"
	}
	return numbered(v)
}
