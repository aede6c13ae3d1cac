package bench

import (
	"math"
	"slices"
)

// summarize summarizes one sample or more. The 99th percentile is a sample, the
// nearest one from above.
func summarize(samples []float64) Times {
	s := slices.Sorted(slices.Values(samples))
	mean := 0.0
	for _, x := range s {
		mean += x / float64(len(s))
	}
	return Times{s[0], medianOf(s), s[int(math.Ceil(0.99*float64(len(s))))-1], mean}
}

// medianOf returns the median of sorted samples.
func medianOf(s []float64) float64 {
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

const (
	minSamples = 20   // before a median can be stable
	precision  = 0.01 // of the median, relative
)

// stable reports whether the median of the samples is within precision of the true
// one with a confidence of 95 %. The true median lies between two of the sorted
// samples. Their indices follow from the binomial distribution, whatever the
// distribution of the samples.
func stable(samples []float64) bool {
	n := float64(len(samples))
	if n < minSamples {
		return false
	}
	s := slices.Sorted(slices.Values(samples))
	spread := 0.98 * math.Sqrt(n)
	lo, hi := s[int(n/2-spread)], s[int(math.Ceil(n/2+spread))]
	m := medianOf(s)
	return m-lo <= precision*m && hi-m <= precision*m
}
