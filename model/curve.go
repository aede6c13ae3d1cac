package model

import (
	"fmt"
	"math"
	"slices"
)

// An Estimate is a number that was measured: its value, and the interval that holds the
// true one with a confidence of 95 %.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Exactly returns an estimate of a number that is known.
func Exactly(x float64) Estimate { return Estimate{x, x, x} }

// A Piece is a line: the time of what has From bytes or more, up to the next piece.
type Piece struct {
	From    int      `json:"from"`    // bytes
	Startup Estimate `json:"startup"` // µs; where the line meets 0 bytes, which may be below 0 in a later piece
	PerByte Estimate `json:"perByte"` // µs
	// Time is that of From bytes, on the line: in a later piece its interval says more than
	// that of Startup, which is far from all that was measured.
	Time Estimate `json:"time"` // µs
	// Residual is the median distance of what was measured from the line, relative to the
	// line.
	Residual float64 `json:"residual"`
}

// A Curve is a time that depends on a number of bytes: lines, in order of From, the first
// from 0. A protocol or a cache that ends at some size begins a new piece. The curve may
// jump between two pieces. The zero Curve takes no time.
type Curve []Piece

// Line returns the curve of one piece.
func Line(startup, perByte float64) Curve {
	return Curve{{Startup: Exactly(startup), PerByte: Exactly(perByte), Time: Exactly(startup)}}
}

// Time returns the time of a number of bytes, in µs, which is never below 0. Beyond what was
// measured, the last piece goes on.
func (c Curve) Time(bytes float64) float64 {
	if len(c) == 0 {
		return 0
	}
	i := len(c) - 1
	for i > 0 && float64(c[i].From) > bytes {
		i--
	}
	return max(0, c[i].Startup.Value+bytes*c[i].PerByte.Value)
}

// validate returns what is wrong with a curve.
func (c Curve) validate() error {
	for i, p := range c {
		switch {
		case i == 0 && p.From != 0:
			return fmt.Errorf("the first piece is from %d bytes: want 0", p.From)
		case i > 0 && p.From <= c[i-1].From:
			return fmt.Errorf("a piece from %d bytes after one from %d: want them in order", p.From, c[i-1].From)
		case !finite(p.Startup) || !finite(p.PerByte) || !finite(p.Time):
			return fmt.Errorf("the piece from %d bytes: want finite numbers", p.From)
		case i == 0 && p.Startup.Value < 0 || p.PerByte.Value < 0:
			return fmt.Errorf("the piece from %d bytes takes less than no time", p.From)
		}
	}
	return nil
}

// finite reports whether an estimate is one of numbers from which no sum overflows.
func finite(e Estimate) bool {
	return !slices.ContainsFunc([]float64{e.Value, e.Low, e.High}, func(x float64) bool { return math.IsNaN(x) || math.Abs(x) > 1e100 })
}
