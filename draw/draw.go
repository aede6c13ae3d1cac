// Package draw makes pictures of what package sim says: figures of the
// textbook's kind as SVG, a page that plays them, and timelines that a trace
// viewer opens. Its writers are pure: the same scene gives the same bytes.
package draw

import "github.com/chorale-go/chorale/sim"

// A Scene is what all pictures but charts show: who plays what, and what the
// simulation says of it.
type Scene struct {
	Title  string
	Parts  []sim.Part  // as they were simulated
	Result *sim.Result // with its Log and Links: see sim.Config.Record
}
