package tune

import (
	"cmp"
	"math"
	"slices"

	"github.com/chorale-go/chorale/model"
)

// A Pair is two of some hosts, by their numbers.
type Pair [2]int

// Pairs returns the pairs of some hosts, or as many of them as limit says if there are more,
// but each host is in one at least. Pairs that follow each other share no host as far as that
// goes: they are the rounds of a tournament, by the circle method.
func Pairs(hosts, limit int) (pairs []Pair) {
	even := hosts + hosts%2 // the last of an odd number has a round without a pair
	limit = min(max(limit, even/2), hosts*(hosts-1)/2)
	for round := 0; len(pairs) < limit; round++ {
		for k := 0; k < even/2 && len(pairs) < limit; k++ {
			a, b := (round+k)%(even-1), (round+even-1-k)%(even-1)
			if k == 0 {
				b = even - 1
			}
			if b == hosts || a == hosts {
				continue
			}
			pairs = append(pairs, Pair{min(a, b), max(a, b)})
		}
	}
	return pairs
}

const (
	tolerance = 0.1 // by which times of a class may differ beyond their intervals
	maxUnlike = 8   // classes
)

// Classes puts together what takes the same: each item is some times, in the same order. Two
// items agree if each of their times has intervals that meet, or that are apart by no more than
// a tenth. A class is of what agrees with the first of it, which is the fastest. If there
// would be more than 8 classes, the times may be apart by two tenths, or four, and so on. The
// largest class comes first, and in a class the items are in the order of their times.
func Classes(items [][]model.Estimate) (classes [][]int) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(items[a]), size(items[b])) })
	for apart := tolerance; ; apart *= 2 {
		classes = nil
		for _, i := range order {
			k := slices.IndexFunc(classes, func(class []int) bool { return agree(items[class[0]], items[i], apart) })
			if k < 0 {
				k, classes = len(classes), append(classes, nil)
			}
			classes[k] = append(classes[k], i)
		}
		if len(classes) <= maxUnlike {
			break
		}
	}
	slices.SortStableFunc(classes, func(a, b []int) int { return len(b) - len(a) })
	return classes
}

// size returns the geometric mean of some times, but for a constant factor, as a logarithm.
func size(times []model.Estimate) (sum float64) {
	for _, t := range times {
		sum += math.Log(max(t.Value, instant))
	}
	return sum
}

// instant is the shortest time, in µs, that differs from another one.
const instant = 1e-3

// agree reports whether the intervals of times meet, or are apart by no more than a part of
// the time.
func agree(a, b []model.Estimate, apart float64) bool {
	for i := range a {
		if max(a[i].Low, b[i].Low, instant) > (1+apart)*max(min(a[i].High, b[i].High), instant) {
			return false
		}
	}
	return true
}

// Estimate returns the median of measurements that should be equal, and their range.
func Estimate(times []float64) model.Estimate { return estimate(times) }

// Traits are times by which hosts of a class are alike: those of copies, sums and messages of
// several lengths within the host, with the spread of what was measured.
func Traits(n model.Node, links []model.Link) (times []model.Estimate) {
	add := func(c model.Curve, spread float64, sizes ...float64) {
		for _, bytes := range sizes {
			t := c.Time(bytes)
			times = append(times, model.Estimate{Value: t, Low: t / (1 + spread), High: t * (1 + spread)})
		}
	}
	add(n.Copy, n.Origin.Spread, 4<<10, 256<<10, mostBytes)
	for _, c := range n.Combine {
		add(c.Curve, n.Origin.Spread, 4<<10, mostBytes)
	}
	for _, l := range links {
		add(l.OneWay, l.Origin.Spread, 8, 64<<10, 1<<20)
	}
	return append(times, model.Exactly(float64(n.Processors)))
}
