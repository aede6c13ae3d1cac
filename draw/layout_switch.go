package draw

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/topo"
)

// tree draws the leaves in a row, and above each two what links them.
func (l *plan) tree(t *topo.Tree) {
	p := t.Processors()
	l.manner, l.pitch = beneath, 70
	// By place: the root is 1, the children of v are 2v and 2v+1.
	place := make([]point, 2*p)
	for i := range p {
		place[p+i] = point{float64(i) * l.pitch, 0}
	}
	for v := p - 1; v > 0; v-- {
		left, right := place[2*v], place[2*v+1]
		place[v] = point{(left.x + right.x) / 2, left.y - levelHeight*0.8}
	}
	l.at = append(place[p:len(place):len(place)], place[1:p]...)
}

// fatTree draws the processors in a row, the switches in three above.
func (l *plan) fatTree(t *topo.FatTree) {
	p := t.Processors()
	l.manner, l.pitch = beneath, 52
	var k int
	fmt.Sscanf(t.String(), "fattree:k=%d", &k)
	half := k / 2 // switches of a level in a pod, and processors at an edge switch
	// Pods and edge switches stand a little apart.
	for i := range p {
		l.at = append(l.at, point{float64(i)*l.pitch + float64(i/half)*12 + float64(i/half/half)*24, 0})
	}
	width := l.at[p-1].x
	level := func(n int, y float64, x func(i int) float64) {
		for i := range n {
			l.at = append(l.at, point{x(i), y})
		}
	}
	above := func(i int) float64 { return (l.at[i*half].x + l.at[i*half+half-1].x) / 2 }
	core := half * half
	high := max(levelHeight, width/16)
	level(p/half, -levelHeight, above)
	level(p/half, -levelHeight-high, above)
	level(core, -levelHeight-2.4*high, func(i int) float64 { return width * (float64(i) + 0.5) / float64(core) })
}

// dragonfly draws the routers around, group by group, and the processors of
// each outside of it.
func (l *plan) dragonfly(t *topo.Dragonfly) func(*wire) {
	var group, each, across int // routers in a group, processors and links to other groups at a router
	fmt.Sscanf(t.String(), "dragonfly:%d,%d,%d", &group, &each, &across)
	n, routers := t.Processors(), t.Switches()
	inner := max(110, float64(routers)*70/(2*math.Pi), float64(n)*48/(2*math.Pi))
	outer := inner + 74
	// A router has a share of its group's share of the turn, of which the rest
	// is left empty.
	share := 1 / float64(routers)
	turn := func(i, k, n int) float64 { // the k-th of n things at router i
		first := float64(i/group*group) * share
		within := float64(i%group) + (float64(k)+0.5)/float64(n)
		return first + within*share*0.86
	}
	for v := range n {
		l.at = append(l.at, polar(outer, turn(v/each, v%each, each)))
	}
	for i := range routers {
		l.at = append(l.at, polar(inner, turn(i, 0, 1)))
	}
	return func(w *wire) {
		i, j := w.a-n, w.b-n
		if i >= 0 && j >= 0 && i/group == j/group && j-i > 1 {
			w.curve = bowed(l.at[w.a], l.at[w.b], 14*float64(i-j)) // inwards, clear of those between
		}
	}
}
