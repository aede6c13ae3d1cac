package topo

import "fmt"

// A FatTree is the k-ary fat tree of three levels of switches with k ports
// each, k even: k pods of k/2 edge and k/2 aggregation switches, and k²/4 core
// switches above. k³/4 processors, 5k²/4 switches, 3k³/4 links; diameter 6, and
// k³/8 links between halves, as many as the processors can fill. Al-Fares,
// Loukissas and Vahdat, A Scalable, Commodity Data Center Network Architecture,
// SIGCOMM 2008.
//
// The route climbs to the lowest common switch and descends. Of several ways up
// it takes the one that the destination's number names: its index below its
// edge switch chooses the aggregation switch, its edge switch's index in the
// pod the core switch. So all messages to one processor meet at one core
// switch, and those to different processors of a pod at different ones.
//
// Switches are named edge0.1 and agg0.1, by pod and index, and core3.
type FatTree struct {
	k    int
	half int // k/2: switches of a level in a pod, and ports up or down
	p    int
}

// NewFatTree returns the k-ary fat tree. k is even.
func NewFatTree(k int) (*FatTree, error) {
	if k < 2 || k%2 == 1 {
		return nil, fmt.Errorf("fattree:k=%d: want an even k of 2 or more", k)
	}
	cube := float64(k) * float64(k) * float64(k)
	if err := checkLinks(fmt.Sprintf("fattree:k=%d", k), cube*3/2); err != nil {
		return nil, err
	}
	return &FatTree{k, k / 2, k * k * k / 4}, nil
}

// String returns the text that Parse reads, as in "fattree:k=4".
func (f *FatTree) String() string { return fmt.Sprintf("fattree:k=%d", f.k) }

// Processors returns k³/4.
func (f *FatTree) Processors() int { return f.p }

// Switches returns 5k²/4.
func (f *FatTree) Switches() int { return 5 * f.half * f.half }

// LinkCount returns 3k³/4.
func (f *FatTree) LinkCount() int { return 3 * f.p }

// Diameter returns 6.
func (f *FatTree) Diameter() int { return 6 }

// Bisection returns k³/8.
func (f *FatTree) Bisection() (int, bool) { return f.p / 2, true }

// Ports returns 1.
func (f *FatTree) Ports() int { return 1 }

// Full-duplex links are numbered by their lower ends: first those of the
// processors, then p above the edge switches, then p above the aggregation
// switches. Upwards comes first.

// AppendRoute appends the way up to the lowest common switch that the
// destination names, and down from it.
func (f *FatTree) AppendRoute(dst []int32, from, to int) []int32 {
	if from == to {
		return dst
	}
	a, b := f.half, f.half*f.half
	edgeFrom, edgeTo := from/a, to/a // switches, counted over all pods
	podFrom, podTo := from/b, to/b
	agg, core := to%a, edgeTo%a
	dst = append(dst, int32(2*from))
	if edgeFrom != edgeTo {
		dst = append(dst, int32(2*(f.p+edgeFrom*a+agg)))
		if podFrom != podTo {
			dst = append(dst,
				int32(2*(2*f.p+(podFrom*a+agg)*a+core)),
				int32(2*(2*f.p+(podTo*a+agg)*a+core)+1))
		}
		dst = append(dst, int32(2*(f.p+edgeTo*a+agg)+1))
	}
	return append(dst, int32(2*to+1))
}

// Ends returns the two vertices that a directed link joins.
func (f *FatTree) Ends(link int) (from, to int) {
	i := link / 2 % f.p
	lower, port := i/f.half, i%f.half // of a switch
	edge, agg, core := f.levels()
	switch link / 2 / f.p {
	case 0:
		from, to = i, edge+lower
	case 1:
		from, to = edge+lower, agg+lower/f.half*f.half+port
	default:
		from, to = agg+lower, core+lower%f.half*f.half+port
	}
	if link%2 == 1 {
		from, to = to, from
	}
	return from, to
}

// levels returns the first vertex of each level of switches.
func (f *FatTree) levels() (edge, agg, core int) {
	return f.p, f.p + f.k*f.half, f.p + 2*f.k*f.half
}

// Name returns a processor's number, or for a switch its level, pod and index,
// as in "edge0.1", "agg0.1" and "core3".
func (f *FatTree) Name(v int) string {
	edge, agg, core := f.levels()
	switch {
	case v < edge:
		return numbered(v)
	case v < agg:
		return fmt.Sprintf("edge%d.%d", (v-edge)/f.half, (v-edge)%f.half)
	case v < core:
		return fmt.Sprintf("agg%d.%d", (v-agg)/f.half, (v-agg)%f.half)
	}
	return fmt.Sprintf("core%d", v-core)
}
