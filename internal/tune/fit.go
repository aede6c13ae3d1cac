package tune

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/chorale-go/chorale/model"
)

// A Point is one measurement: the time of a number of bytes, in µs.
type Point struct{ Bytes, Time float64 }

const (
	maxPieces = 4    // of a curve
	minSizes  = 3    // of a piece
	worth     = 0.75 // a further piece must lower the residual below this part of it,
	plenty    = 0.01 // unless the residual is this already
	resamples = 200  // of the bootstrap
)

// Fit returns the curve that fits the points best: the fewest lines, at most maxPieces,
// beyond which a further line lowers the residual little. Points that are far from the
// others of their size are dropped, and of the rest of a size the median counts. Each line
// is that of Theil and Sen: its slope is the median of the slopes between all pairs of
// sizes, and its start-up the median of what remains, each weighted with its precision if
// all times are equally precise relative to their length. So a few sizes of a piece may be
// wrong. The breaks are those of the least sum of relative distances. The same points
// give the same curve.
func Fit(points []Point) model.Curve {
	sizes := bySize(dropOutliers(points))
	if len(sizes) == 0 {
		return nil
	}
	breaks := findBreaks(mediansOf(sizes))
	curve := make(model.Curve, len(breaks))
	for i, lo := range breaks {
		hi := len(sizes)
		if i+1 < len(breaks) {
			hi = breaks[i+1]
		}
		from := 0
		if i > 0 {
			from = int(sizes[lo][0].Bytes)
		}
		curve[i] = fitPiece(sizes[lo:hi], from)
	}
	return curve
}

// fitPiece fits one line to the points of some sizes. Its confidence intervals are those of a
// bootstrap: each resample has a point of every size but one, so that it has two sizes at
// least, and a slope. A first piece, from 0 bytes, has no start-up below 0.
func fitPiece(sizes [][]Point, from int) model.Piece {
	medians := mediansOf(sizes)
	l := fitLine(medians, from == 0)
	random := rand.New(rand.NewPCG(uint64(len(sizes)), 1))
	startups, slopes, times := make([]float64, resamples), make([]float64, resamples), make([]float64, resamples)
	sample := make([]Point, 0, len(sizes))
	for i := range resamples {
		without := -1
		if len(sizes) >= minSizes {
			without = random.IntN(len(sizes))
		}
		sample = sample[:0]
		for k, same := range sizes {
			if k != without {
				sample = append(sample, same[random.IntN(len(same))])
			}
		}
		s := fitLine(sample, from == 0)
		startups[i], slopes[i], times[i] = s.startup, s.slope, max(0, s.at(float64(from)))
	}
	distances := make([]float64, len(medians))
	for i, p := range medians {
		distances[i] = l.distance(p)
	}
	return model.Piece{
		From:    from,
		Startup: interval(l.startup, startups), PerByte: interval(l.slope, slopes),
		Time:     interval(max(0, l.at(float64(from))), times),
		Residual: median(distances),
	}
}

// interval returns the estimate of a value by those of the resamples.
func interval(value float64, resampled []float64) model.Estimate {
	slices.Sort(resampled)
	n := len(resampled)
	return model.Estimate{Value: value, Low: min(value, resampled[n*25/1000]), High: max(value, resampled[n-1-n*25/1000])}
}

// A line is a time that grows with the bytes.
type line struct{ startup, slope float64 }

func (l line) at(bytes float64) float64 { return l.startup + l.slope*bytes }

// distance returns how far a point is from the line, relative to the point.
func (l line) distance(p Point) float64 { return math.Abs(l.at(p.Bytes)-p.Time) / p.Time }

// fitLine returns the line of Theil and Sen, whose slope is 0 or more.
func fitLine(points []Point, first bool) (l line) {
	slopes, rest := make([]weighted, 0, len(points)*len(points)/2), make([]weighted, len(points))
	for i, p := range points {
		for _, q := range points[:i] {
			if d := math.Abs(p.Bytes - q.Bytes); d > 0 {
				slopes = append(slopes, weighted{(p.Time - q.Time) / (p.Bytes - q.Bytes), d / max(p.Time, q.Time)})
			}
		}
	}
	l.slope = max(0, weightedMedian(slopes))
	for i, p := range points {
		rest[i] = weighted{p.Time - l.slope*p.Bytes, 1 / p.Time}
	}
	if l.startup = weightedMedian(rest); first {
		l.startup = max(0, l.startup)
	}
	return l
}

// A weighted number counts as often as its weight says.
type weighted struct{ value, weight float64 }

// weightedMedian returns 0 for no numbers. It sorts them.
func weightedMedian(all []weighted) float64 {
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	total, sum := 0.0, 0.0
	for _, w := range all {
		total += w.weight
	}
	for _, w := range all {
		if sum += w.weight; sum >= total/2 {
			return w.value
		}
	}
	return 0
}

// dropOutliers drops the points that are farther from the median of their size than three
// standard deviations, as the median distance of all points tells.
func dropOutliers(points []Point) (kept []Point) {
	distances := make(map[Point]float64, len(points))
	var all []float64
	for _, same := range bySize(points) {
		m := median(timesOf(same))
		for _, p := range same {
			distances[p] = math.Abs(p.Time-m) / m
			if len(same) > 2 {
				all = append(all, distances[p])
			}
		}
	}
	if len(all) == 0 {
		return points
	}
	const deviation = 1.4826 // over the median distance, if errors are normal
	limit := max(3*deviation*median(all), plenty)
	for _, p := range points {
		if distances[p] <= limit {
			kept = append(kept, p)
		}
	}
	return kept
}

// bySize returns the points of each size, in order.
func bySize(points []Point) (sizes [][]Point) {
	sorted := slices.SortedStableFunc(slices.Values(points), func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for _, p := range sorted {
		if n := len(sizes); n > 0 && sizes[n-1][0].Bytes == p.Bytes {
			sizes[n-1] = append(sizes[n-1], p)
		} else {
			sizes = append(sizes, []Point{p})
		}
	}
	return sizes
}

// findBreaks returns the index of the first of some medians in each piece.
func findBreaks(medians []Point) []int {
	n := len(medians)
	residual := residuals(medians)
	// least[k][hi] is the least residual of the first hi sizes in k+1 pieces, of which the
	// last begins at from[k][hi].
	least, from := make([][]float64, maxPieces), make([][]int, maxPieces)
	for k := range maxPieces {
		least[k], from[k] = make([]float64, n+1), make([]int, n+1)
		for hi := 1; hi <= n; hi++ {
			if k == 0 {
				least[0][hi] = residual[0][hi]
				continue
			}
			least[k][hi] = math.Inf(1)
			for lo := k * minSizes; hi-lo >= minSizes; lo++ {
				if r := least[k-1][lo] + residual[lo][hi]; r < least[k][hi] {
					least[k][hi], from[k][hi] = r, lo
				}
			}
		}
	}
	pieces := 0
	for k := 1; k < maxPieces && least[pieces][n] > plenty*float64(n); k++ {
		if least[k][n] < math.Pow(worth, float64(k-pieces))*least[pieces][n] {
			pieces = k
		}
	}
	breaks := make([]int, pieces+1)
	for k, hi := pieces, n; k > 0; k-- {
		breaks[k] = from[k][hi]
		hi = breaks[k]
	}
	return breaks
}

// residuals returns, for the medians from lo to before hi, the sum of their distances from
// the line that fits them.
func residuals(medians []Point) [][]float64 {
	n := len(medians)
	all := make([][]float64, n)
	for lo := range n {
		all[lo] = make([]float64, n+1)
		for hi := lo + 1; hi <= n; hi++ {
			l := fitLine(medians[lo:hi], lo == 0)
			for _, p := range medians[lo:hi] {
				all[lo][hi] += l.distance(p)
			}
		}
	}
	return all
}

// mediansOf returns the median of each size.
func mediansOf(sizes [][]Point) []Point {
	medians := make([]Point, len(sizes))
	for i, same := range sizes {
		medians[i] = Point{same[0].Bytes, median(timesOf(same))}
	}
	return medians
}

func timesOf(points []Point) []float64 {
	times := make([]float64, len(points))
	for i, p := range points {
		times[i] = p.Time
	}
	return times
}

// median returns the median of one number or more.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// estimate returns the median of measurements that should be equal. Its interval is their
// range: of five measurements, the true median is outside with a probability of 6 %.
func estimate(x []float64) model.Estimate {
	return model.Estimate{Value: median(x), Low: slices.Min(x), High: slices.Max(x)}
}

// scaled returns an estimate times a factor, shifted one plus a number, and atMost one that
// is no more than a bound. None of them is below 0.
func scaled(e model.Estimate, by float64) model.Estimate {
	return model.Estimate{Value: e.Value * by, Low: e.Low * by, High: e.High * by}
}

func shifted(e model.Estimate, by float64) model.Estimate {
	return model.Estimate{Value: max(0, e.Value+by), Low: max(0, e.Low+by), High: max(0, e.High+by)}
}

func atMost(e model.Estimate, bound float64) model.Estimate {
	return model.Estimate{Value: min(e.Value, bound), Low: min(e.Low, bound), High: min(e.High, bound)}
}
