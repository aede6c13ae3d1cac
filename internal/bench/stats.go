package bench

import (
	"math"
	"slices"
)

// summarize returns the least, the median, the 99th percentile and the mean of
// samples, of which there is at least one. A percentile is a sample, the nearest
// one from above.
func summarize(samples []float64) (least, median, p99, mean float64) {
	s := slices.Sorted(slices.Values(samples))
	for _, x := range s {
		mean += x / float64(len(s))
	}
	return s[0], middle(s), s[int(math.Ceil(0.99*float64(len(s))))-1], mean
}

// middle returns the median of sorted samples.
func middle(s []float64) float64 {
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

const (
	leastSamples = 20   // before a median can be stable
	precision    = 0.01 // how near it must be
)

// stable reports whether the median of the samples is near the true one with a
// confidence of 95 %. The true one lies between two samples whose places among
// the sorted ones follow from the binomial distribution, whatever distribution
// the samples are from.
func stable(samples []float64) bool {
	n := float64(len(samples))
	if n < leastSamples {
		return false
	}
	s := slices.Sorted(slices.Values(samples))
	away := 0.98 * math.Sqrt(n)
	lo, hi := s[int(n/2-away)], s[int(math.Ceil(n/2+away))]
	m := middle(s)
	return m-lo <= precision*m && hi-m <= precision*m
}
