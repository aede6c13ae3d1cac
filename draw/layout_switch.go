package draw

import (
	"fmt"
	"math"

	"github.com/chorale-go/chorale/topo"
)

// tree lays out the leaves in a row, and every switch above its two children.
func (l *layout) tree(t *topo.Tree) {
	p := t.Processors()
	l.arrowStyle, l.pitch = arcsBelow, 70
	// Heap order: the root is 1, the children of v are 2v and 2v+1.
	at := make([]point, 2*p)
	for i := range p {
		at[p+i] = point{float64(i) * l.pitch, 0}
	}
	for v := p - 1; v > 0; v-- {
		left, right := at[2*v], at[2*v+1]
		at[v] = point{(left.x + right.x) / 2, left.y - levelHeight*0.8}
	}
	l.at = append(at[p:len(at):len(at)], at[1:p]...)
}

// fatTree lays out the processors in a row, and the switches in three rows above.
func (l *layout) fatTree(t *topo.FatTree) {
	p := t.Processors()
	l.arrowStyle, l.pitch = arcsBelow, 52
	var k int
	fmt.Sscanf(t.String(), "fattree:k=%d", &k)
	half := k / 2 // switches of a level in a pod, and processors at an edge switch
	// Gaps separate pods and the processors of different edge switches.
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
	height := max(levelHeight, width/16)
	level(p/half, -levelHeight, above)
	level(p/half, -levelHeight-height, above)
	level(core, -levelHeight-2.4*height, func(i int) float64 { return width * (float64(i) + 0.5) / float64(core) })
}

// hosts lays out the processors in a row, host by host, each host above its own, and the
// networks above all.
func (l *layout) hosts(t *topo.Hosts) {
	p := t.Processors()
	l.arrowStyle, l.pitch = arcsBelow, 52
	sum, count := make([]float64, t.Count()), make([]float64, t.Count())
	for v := range p {
		host := t.Host(v)
		x := float64(v)*l.pitch + float64(host)*24 // gaps separate hosts
		l.at = append(l.at, point{x, 0})
		sum[host], count[host] = sum[host]+x, count[host]+1
	}
	width := l.at[p-1].x
	height := max(levelHeight, width/16)
	for host := range t.Count() {
		l.at = append(l.at, point{sum[host] / count[host], -height})
	}
	networks := t.Switches() - t.Count()
	for i := range networks {
		l.at = append(l.at, point{width * (float64(i) + 0.5) / float64(networks), -2.4 * height})
	}
}

// dragonfly lays out the routers on a circle, group by group, and the processors
// of each router on a larger circle. It returns a function that bends the edges
// within a group.
func (l *layout) dragonfly(t *topo.Dragonfly) func(*edge) {
	var group, perRouter, across int // routers in a group, processors and links to other groups at a router
	fmt.Sscanf(t.String(), "dragonfly:%d,%d,%d", &group, &perRouter, &across)
	n, routers := t.Processors(), t.Switches()
	inner := max(110, float64(routers)*70/(2*math.Pi), float64(n)*48/(2*math.Pi))
	outer := inner + 74
	// The routers of a group take 86% of its angle. The rest separates groups.
	share := 1 / float64(routers)
	turn := func(i, k, n int) float64 { // of the k-th of n nodes at router i
		first := float64(i/group*group) * share
		within := float64(i%group) + (float64(k)+0.5)/float64(n)
		return first + within*share*0.86
	}
	for v := range n {
		l.at = append(l.at, polar(outer, turn(v/perRouter, v%perRouter, perRouter)))
	}
	for i := range routers {
		l.at = append(l.at, polar(inner, turn(i, 0, 1)))
	}
	return func(e *edge) {
		i, j := e.a-n, e.b-n
		if i >= 0 && j >= 0 && i/group == j/group && j-i > 1 {
			e.curve = bow(l.at[e.a], l.at[e.b], 14*float64(i-j)) // inwards, around the routers between
		}
	}
}
