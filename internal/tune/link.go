package tune

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/model"
)

// Rows are what a link is made of: rows of package bench, each measured several times. Alone
// and Together are of ranks that share processors: only [Link] needs them.
type Rows struct {
	OneWay   []bench.Row // broadcasts between two ranks, with a rotating root: each is a message
	Exchange []bench.Row // shifts by 1 between two ranks: two messages that cross each other
	Pipeline []bench.Row // broadcasts between two ranks in pieces of PieceBytes
	Call     []bench.Row // a collective of one rank
	Rate     []bench.Row // windows of messages between two ranks
	Alone    []bench.Row // pingpongs of 8 bytes of two ranks
	Together []bench.Row // pingpongs of 8 bytes of PerProcessor ranks per processor
	Before   Observation // of the machine
}

// PieceBytes is the length of a pipeline's pieces, and PerProcessor how many ranks share a
// processor where switching is measured.
const (
	PieceBytes   = 64
	PerProcessor = 2
)

// most of a message is its own: what a step takes beside it is at most this part of the
// fastest message.
const most = 0.5

// Link returns the profile of a transport.
//
// A broadcast between two ranks whose root rotates is a ping-pong: a call is one message,
// with the cost of a call and of a step of its receiver. A pipeline has a step more for
// each piece. While its messages follow each other, a step costs the rank that is behind;
// the slope over the number of pieces is the cost of a step, messages included. Of this,
// Step is at most half of the fastest message: the rest belongs to the message itself.
// Where ranks share processors, all processors have work at any time, so that what pingpongs
// take beyond their own messages is switching.
func Link(transport string, processors int, r Rows) (model.Link, error) {
	l, err := Between(transport, processors, r)
	if err == nil && (len(r.Alone) == 0 || len(r.Together) == 0) {
		err = notAll(transport)
	}
	if err != nil {
		return l, err
	}
	// A processor of the pairs of ranks carries PerProcessor messages after one another for
	// each way of a pingpong.
	alone, together := median(medians(r.Alone))/2, estimate(medians(r.Together))
	l.Switch = shifted(scaled(together, 1.0/(2*PerProcessor)), -alone)
	return l, nil
}

func notAll(transport string) error { return fmt.Errorf("%s: not all was measured", transport) }

// Between returns the profile of a transport between ranks that never share a processor,
// because they are on different hosts: that of Link without Switch.
func Between(transport string, processors int, r Rows) (model.Link, error) {
	l := model.Link{Transport: transport}
	for _, rows := range [][]bench.Row{r.OneWay, r.Exchange, r.Pipeline, r.Call, r.Rate} {
		if len(rows) == 0 {
			return l, notAll(transport)
		}
	}
	fastest := min(slices.Min(medians(r.OneWay)), slices.Min(medians(r.Exchange)))
	l.Call = atMost(estimate(medians(r.Call)), most*fastest)
	pipeline := Fit(points(r.Pipeline))[0].PerByte
	l.Step = atMost(scaled(pipeline, PieceBytes), most*(fastest-l.Call.Value))
	beside := l.Call.Value + l.Step.Value
	l.OneWay, l.Exchange = Fit(minus(points(r.OneWay), beside)), Fit(minus(points(r.Exchange), beside))
	l.Gap = scaled(estimate(medians(r.Rate)), 1.0/bench.Window)
	l.Origin = r.Before.Origin(append(spreads(r.OneWay), spreads(r.Exchange)...), processors)
	return l, nil
}

// points returns the medians of rows.
func points(rows []bench.Row) []Point {
	all := make([]Point, len(rows))
	for i, r := range rows {
		all[i] = Point{float64(r.Bytes), r.Median}
	}
	return all
}

// minus takes the time that is charged elsewhere from each point, but never all of it.
func minus(all []Point, beside float64) []Point {
	for i := range all {
		all[i].Time = max(all[i].Time-beside, all[i].Time/100)
	}
	return all
}

// medians returns the median of each row.
func medians(rows []bench.Row) []float64 {
	m := make([]float64, len(rows))
	for i, r := range rows {
		m[i] = r.Median
	}
	return m
}

// spreads returns how far the repeated rows of each size are apart.
func spreads(rows []bench.Row) (all []float64) {
	for _, same := range bySize(points(rows)) {
		all = append(all, spreadOf(timesOf(same)))
	}
	return all
}
