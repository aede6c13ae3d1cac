package command

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/draw"
)

// crossovers finds the points at which the cheapest algorithm changes by the
// formulas. A crossover in m is found to the last bit between two samples. A
// crossover in p is the first number of ranks for which another algorithm is
// cheaper.
func (v *sweep) crossovers(specs []string, series []draw.Series) (all []draw.Crossover) {
	specs, series = v.compared(specs, series)
	var pairs [][2][]draw.Point // the marks on either side
	for _, c := range v.changes(specs, series) {
		all, pairs = append(all, c.at), append(pairs, [2][]draw.Point{series[c.before].Simulated, series[c.after].Simulated})
	}
	for i := range all {
		low, high := 0.0, math.Inf(1) // the crossovers beside this one
		if i > 0 {
			low = all[i-1].At.X
		}
		if i+1 < len(all) {
			high = all[i+1].At.X
		}
		all[i].Contradicted = contradicted(pairs[i][0], pairs[i][1], low, all[i].At.X, high)
	}
	return all
}

// A change is a point at which another algorithm becomes the cheapest by the formulas.
type change struct {
	at            draw.Crossover
	before, after int // of the algorithms
}

// changes returns the changes among some algorithms, in the order of the quantity.
func (v *sweep) changes(specs []string, series []draw.Series) (all []change) {
	best, at := -1, 0.0
	for _, sample := range v.samples() {
		x := float64(sample)
		next, known := v.cheapest(specs, best, x)
		if !known {
			continue // some algorithm does not take so many ranks
		}
		if best >= 0 && next != best {
			at, after := v.crossover(specs, series, best, next, at, x)
			all = append(all, change{at, best, after})
		}
		best, at = next, x
	}
	return all
}

// contradicted reports whether the algorithm before a crossover costs more than the
// one after it at the last mark before the crossover, or less at the first from there
// on. Marks below low and from high on do not count.
func contradicted(before, after []draw.Point, low, at, high float64) bool {
	below, above := false, 0.0
	for _, b := range before {
		i := slices.IndexFunc(after, func(a draw.Point) bool { return a.X == b.X })
		if i < 0 || b.X < low || b.X >= high {
			continue
		}
		gain := after[i].Y/b.Y - 1 // of the algorithm before
		if b.X < at {
			below = gain < -1e-9
		} else if gain > 1e-9 && above == 0 {
			return true
		} else {
			above = b.X
		}
	}
	return below
}

// maxRanges is how many ranges a chart names in which best is another algorithm.
const maxRanges = 6

// whichIsBest says which algorithm a value of --algorithm that leaves the choice open stands
// for, and from where on.
func (v *sweep) whichIsBest(spec string) string {
	specs, series := v.compared([]string{spec}, nil)
	changes := v.changes(specs, series)
	first, _ := v.cheapest(specs, 0, float64(v.samples()[0]))
	text, quantity := series[first].Name, "m"
	if v.by == byRanks {
		quantity = "p"
	}
	if len(changes) < maxRanges {
		for _, c := range changes {
			text += fmt.Sprintf(", from %s = %s on %s", quantity, formatShort(c.at.At.X), series[c.after].Name)
		}
		return seriesName(spec) + " is " + text
	}
	names := []string{text}
	for _, c := range changes {
		if name := series[c.after].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf("%s is by turns %s", seriesName(spec), strings.Join(names, ", "))
}

// compared returns the algorithms between which crossovers are shown. If the chart is
// of best alone, they are those that it selects; else best is not one of them.
func (v *sweep) compared(specs []string, series []draw.Series) (others []string, of []draw.Series) {
	for i, spec := range specs {
		if nameOfSpec(spec) != best || seriesName(spec) != spec {
			others, of = append(others, spec), append(of, series[i])
		}
	}
	if len(others) > 0 {
		return others, of
	}
	for _, at := range v.samples() {
		for _, spec := range specs {
			chosen, err := v.resolve(spec, float64(at))
			if one := bestAmong + nameOfSpec(chosen); err == nil && !slices.Contains(others, one) {
				others, of = append(others, one), append(of, draw.Series{Name: nameOfSpec(chosen)})
			}
		}
	}
	return others, of
}

// cheapest returns the index of the cheapest algorithm at a quantity. Ties go to
// the previous one.
func (v *sweep) cheapest(specs []string, before int, at float64) (best int, known bool) {
	costs := make([]float64, len(specs))
	for i, spec := range specs {
		cost, err := v.formula(spec, at)
		if err != nil {
			return 0, false
		}
		costs[i] = cost
	}
	best = max(before, 0)
	for i, cost := range costs {
		if cost < costs[best]*(1-1e-12) {
			best = i
		}
	}
	return best, true
}

// crossover returns the crossover between two quantities, and the algorithm that is
// the cheapest from there on.
func (v *sweep) crossover(specs []string, series []draw.Series, before, after int, low, high float64) (at draw.Crossover, last int) {
	label := "p"
	if v.by == byRanks {
		for p := low + 1; p < high; p++ {
			if next, known := v.cheapest(specs, before, p); known && next != before {
				after, high = next, p
			}
		}
	} else {
		label = "m*"
		for middle := (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2 {
			costBefore, _ := v.formula(specs[before], middle)
			costAfter, _ := v.formula(specs[after], middle)
			if costBefore <= costAfter {
				low = middle
			} else {
				high = middle
			}
		}
	}
	cost, _ := v.formula(specs[after], high)
	return draw.Crossover{
		At:          draw.Point{X: high, Y: cost},
		Label:       label + " = " + formatShort(high),
		Description: fmt.Sprintf("%s is the cheapest before, %s after", series[before].Name, series[after].Name),
	}, after
}
