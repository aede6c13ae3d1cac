package draw

import (
	"fmt"
	"io"
	"math"

	"github.com/chorale-go/chorale/internal/traceevent"
)

// The processes of the trace of a comparison.
const (
	simulatedProcess = 1
	realProcess      = 2
)

// CompareTrace writes a comparison in Chrome's Trace Event Format, which Perfetto opens: the
// simulated timeline is one process and the real one another, each with a track for the steps of
// all ranks and one for each rank. Times are those of the real call: the simulated whole is as long.
// Slices that part have the category "parts", and say by how much.
func CompareTrace(w io.Writer, c Comparison) error {
	ns := func(share float64) int64 { return int64(math.Round(share * c.Real * 1e9)) }
	t := traceevent.NewWriter(w,
		traceevent.Pair{Name: "title", Value: c.Title},
		traceevent.Pair{Name: "real seconds", Value: c.Real},
		traceevent.Pair{Name: "simulated, in " + c.unit(), Value: c.Simulated})
	for _, process := range []int{simulatedProcess, realProcess} {
		simulated := process == simulatedProcess
		slice := func(track, step int, start, end ComparedShare, parts bool) {
			category := "step"
			if parts {
				category = "parts"
			}
			args := []traceevent.Pair{
				{Name: "simulated share", Value: end.Simulated - start.Simulated}, {Name: "real share", Value: end.Real - start.Real},
			}
			from, to := start.Real, end.Real
			if simulated {
				from, to = start.Simulated, end.Simulated
			}
			t.Slice(process, track, ns(from), max(ns(from), ns(to)), fmt.Sprintf("step %d", step+1), category, args...)
		}
		t.Process(process, map[bool]string{true: "simulated", false: "real"}[simulated])
		all := t.Track(process, "all ranks", 0)
		var at ComparedShare
		for i, s := range c.Steps {
			end := ComparedShare{at.Simulated + s.Simulated, at.Real + s.Real}
			slice(all, i, at, end, s.Parts)
			at = end
		}
		for rank, spans := range c.Ranks {
			track := t.Track(process, fmt.Sprintf("rank %d", rank), 0)
			for _, s := range spans {
				slice(track, s.Step, ComparedShare{s.SimulatedStart, s.RealStart}, ComparedShare{s.SimulatedEnd, s.RealEnd}, s.Parts)
			}
		}
	}
	return t.Close()
}
