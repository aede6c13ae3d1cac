package tune

import (
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/shm"
)

// Rows are what a link is made of: rows of package bench, each measured several times.
type Rows struct {
	OneWay   []bench.Row // broadcasts between two ranks, with a rotating root: each is a message
	Exchange []bench.Row // shifts by 1 between two ranks: two messages that cross each other
	Call     []bench.Row // a collective of one rank
	Rate     []bench.Row // windows of messages between two ranks
	Before   Observation // of the machine

	// Those of ranks that may share a processor: only [Link] needs them.
	Send    []bench.Row // send overheads between two ranks
	Receive []bench.Row // receive overheads between two ranks
	Shared  []bench.Row // shifts by 1 between PerProcessor ranks for each processor

	// Turns are those of each of [TurnCalls] between these ranks, of 8 bytes, without the shift:
	// only [Link] needs them.
	Turns [][]bench.Row

	Pipeline []bench.Row // broadcasts between two ranks in pieces of PieceBytes: only [Between] needs them
}

// PieceBytes is the length of a pipeline's pieces, and PerProcessor how many ranks share a
// processor where that is measured.
const (
	PieceBytes   = 64
	PerProcessor = 2
)

// A TurnCall is a collective in which ranks that share processors take turns.
type TurnCall struct {
	Collective sched.Collective
	Algorithm  string
}

// TurnCalls are those from which the cost of a switch follows, beside a shift: how often
// processors switch depends on who waits for whom, which one call tells badly.
var TurnCalls = []TurnCall{{sched.Bcast, "binomial"}, {sched.Reduce, "binomial"}, {sched.AllToAll, "direct"}}

// most of a message is its own: what a call takes beside it is at most this part of the
// fastest message, and what a step takes beside it this part of what a step with one message
// takes.
const most = 0.5

// Link returns the profile of a transport.
//
// A broadcast between two ranks whose root rotates is a ping-pong: a call is one message,
// with the cost of a call and of a step of its receiver. An overhead has the cost of a call
// and of a step beside the message's own; what of it is the step's is not measured, and taken
// to be half. Where ranks share processors, all processors have work at any time, so that
// what a shift takes is that of its messages at both ends, and of switching to each rank. A
// message is a rendezvous from the first size on whose sender waits for its receiver. What
// that takes of its sender is what the receiver's part and a rank's turn leave of a shift. How
// often processors switch follows from the simulation: the cost of a switch is the median of those
// with which the simulated shift and [TurnCalls] take as long as the measured ones.
func Link(transport string, processors int, r Rows) (l model.Link, err error) {
	for _, rows := range [][]bench.Row{r.OneWay, r.Exchange, r.Send, r.Receive, r.Shared, r.Call, r.Rate} {
		if len(rows) == 0 {
			return l, notAll(transport)
		}
	}
	if len(r.Turns) != len(TurnCalls) {
		return l, notAll(transport)
	}
	send, receive, shared := bySize(points(r.Send)), bySize(points(r.Receive)), bySize(points(r.Shared))
	least := shortest(send)
	if other := shortest(receive); other.Value < least.Value {
		least = other
	}
	l = pair(transport, processors, r, func(call float64) model.Estimate { return scaled(shifted(least, -call), most) })
	beside := l.Call.Value + l.Step.Value
	received := minus(points(r.Receive), beside)
	for i, p := range received { // no more than a message, whichever way it was measured
		received[i].Time = max(p.Time/100, min(p.Time, l.OneWay.Time(p.Bytes), l.Exchange.Time(p.Bytes)))
	}
	l.Receive = Fit(received)

	parts := shortest(send).Value + shortest(receive).Value - 2*beside
	turn := max(0, shortest(shared).Value/PerProcessor-parts-beside) // what a rank's turn takes beside its work
	var sent []Point
	for _, same := range send {
		bytes := same[0].Bytes
		if median(timesOf(same)) < most*float64(bench.Lateness(int(bytes)))/float64(time.Microsecond) {
			sent = append(sent, minus(same, beside)...)
			continue
		}
		l.RendezvousFrom = int(bytes)
		break
	}
	if l.RendezvousFrom == 0 { // no size waits
		l.RendezvousFrom = 2 * int(send[len(send)-1][0].Bytes)
	}
	for _, same := range shared {
		if same[0].Bytes < float64(l.RendezvousFrom) {
			continue
		}
		other := beside + turn + l.Receive.Time(same[0].Bytes)
		for _, p := range same {
			sent = append(sent, minus([]Point{{p.Bytes, p.Time / PerProcessor}}, other)...)
		}
	}
	l.Send = Fit(sent)
	l.Capacity = capacities[transport]
	l.Switch, err = switching(l, processors, append([]turns{{TurnCall{sched.Shift, "direct"}, shared[0]}}, turnsOf(r)...))
	return l, err
}

// Between returns the profile of a transport between ranks that never share a processor,
// because they are on different hosts: that of Link without Switch, and without the parts of
// its ends.
//
// A pipeline has a step more for each piece. While its messages follow each other, a step
// costs the rank that is behind; the slope over the number of pieces is the cost of a step,
// messages included. Of this, Step is at most half of the fastest message: the rest belongs
// to the message itself.
func Between(transport string, processors int, r Rows) (l model.Link, err error) {
	for _, rows := range [][]bench.Row{r.OneWay, r.Exchange, r.Pipeline, r.Call, r.Rate} {
		if len(rows) == 0 {
			return l, notAll(transport)
		}
	}
	pipeline := scaled(Fit(points(r.Pipeline))[0].PerByte, PieceBytes)
	return pair(transport, processors, r, func(float64) model.Estimate { return pipeline }), nil
}

func notAll(transport string) error { return fmt.Errorf("%s: not all was measured", transport) }

// pair returns what two ranks that have a processor each tell of a transport, where the cost
// of a step follows from that of a call.
func pair(transport string, processors int, r Rows, step func(call float64) model.Estimate) model.Link {
	l := model.Link{Transport: transport}
	fastest := min(slices.Min(medians(r.OneWay)), slices.Min(medians(r.Exchange)))
	l.Call = atMost(estimate(medians(r.Call)), most*fastest)
	l.Step = atMost(step(l.Call.Value), most*(fastest-l.Call.Value))
	beside := l.Call.Value + l.Step.Value
	l.OneWay, l.Exchange = Fit(minus(points(r.OneWay), beside)), Fit(minus(points(r.Exchange), beside))
	l.Gap = scaled(estimate(medians(r.Rate)), 1.0/bench.Window)
	l.Origin = r.Before.Origin(append(spreads(r.OneWay), spreads(r.Exchange)...), processors)
	return l
}

// capacities are how many short messages the transports keep for a receiver: of these, those
// that have cells for them.
var capacities = map[string]int{"inproc": inproc.Capacity, "shm": shm.Capacity}

// turns are the times of a call of PerProcessor ranks for each processor.
type turns struct {
	TurnCall
	times []Point
}

func turnsOf(r Rows) (all []turns) {
	for i, rows := range r.Turns {
		all = append(all, turns{TurnCalls[i], points(rows)})
	}
	return all
}

// switching returns the time of a switch with which calls take as long in the simulation as
// they were measured: the middle one of all times.
func switching(l model.Link, processors int, calls []turns) (model.Estimate, error) {
	var all []float64
	for _, c := range calls {
		for _, p := range c.times {
			call := predict.Call{
				Collective: c.Collective, Algorithm: c.Algorithm, Ranks: max(2, processors*PerProcessor),
				Bytes: int(p.Bytes), Transport: l.Transport,
			}
			lo, hi := 0.0, p.Time
			for range 40 {
				l.Switch = model.Exactly((lo + hi) / 2)
				took, err := predict.TimeInLoop(&model.Profile{Node: model.Node{Processors: processors}, Links: []model.Link{l}}, call, bench.RotatingRoot)
				if err != nil {
					return model.Estimate{}, err
				}
				if took < p.Time {
					lo = l.Switch.Value
				} else {
					hi = l.Switch.Value
				}
			}
			all = append(all, lo)
		}
	}
	return estimate(all), nil
}

// shortest returns the time of the least size.
func shortest(sizes [][]Point) model.Estimate { return estimate(timesOf(sizes[0])) }

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
