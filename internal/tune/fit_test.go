package tune

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/transport/shm"
)

// synthetic returns points on a curve, some of each size, with errors and outliers. Of each
// size, most are no outliers.
func synthetic(c model.Curve, repeats int, noise, outliers float64, random *rand.Rand) (points []Point) {
	for bytes := 8; bytes <= 4<<20; bytes *= 2 {
		disturbed := 0
		for range repeats {
			t := c.Time(float64(bytes)) * (1 + noise*random.NormFloat64())
			if random.Float64() < outliers && 2*(disturbed+1) < repeats {
				disturbed++
				t *= 2 + 8*random.Float64() // what disturbs a measurement makes it longer
			}
			points = append(points, Point{float64(bytes), t})
		}
	}
	return points
}

func near(t interface{ Errorf(string, ...any) }, what string, got, want, tolerance float64) {
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %g: want %g", what, got, want)
	}
}

func TestAFitRecoversALineFromNoiseAndOutliers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		startup := rapid.Float64Range(0.1, 50).Draw(t, "start-up")
		perByte := rapid.Float64Range(5e-5, 1e-2).Draw(t, "per byte")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		c := Fit(synthetic(model.Line(startup, perByte), 5, 0.02, 0.1, random))
		for bytes := 8.0; bytes <= 4<<20; bytes *= 8 {
			near(t, "the time", c.Time(bytes), startup+perByte*bytes, 0.1)
		}
	})
}

func TestAFitFindsWhereTheProtocolChanges(t *testing.T) {
	truth := model.Curve{
		{Startup: model.Exactly(0.3), PerByte: model.Exactly(1e-3)},
		{From: 8 << 10, Startup: model.Exactly(5), PerByte: model.Exactly(2e-4)},
		{From: 512 << 10, Startup: model.Exactly(40), PerByte: model.Exactly(3e-4)},
	}
	for seed := range uint64(100) {
		c := Fit(synthetic(truth, 5, 0.01, 0.1, rand.New(rand.NewPCG(seed, 0))))
		if len(c) != 3 || c[1].From != 8<<10 || c[2].From != 512<<10 {
			t.Errorf("seed %d: got %+v: want pieces from 0, 8K and 512K", seed, c)
			continue
		}
		for i := range c {
			near(t, "the cost of a byte", c[i].PerByte.Value, truth[i].PerByte.Value, 0.1)
		}
		near(t, "the start-up", c[0].Startup.Value, 0.3, 0.1)
		near(t, "the start-up", c[1].Startup.Value, 5, 0.1)
	}
}

func TestALineWithoutNoiseIsExactAndOfOnePiece(t *testing.T) {
	c := Fit(synthetic(model.Line(2, 1e-3), 3, 0, 0, rand.New(rand.NewPCG(1, 1))))
	if len(c) != 1 || c[0].Residual > 1e-9 || math.Abs(c[0].Startup.Value-2) > 1e-9 || math.Abs(c[0].PerByte.Value-1e-3) > 1e-12 {
		t.Errorf("got %+v: want the line 2 + x/1000", c)
	}
}

func TestIntervalsHoldTheTruthMostly(t *testing.T) {
	const tries = 100
	held := 0
	for seed := range uint64(tries) {
		var points []Point
		for _, p := range synthetic(model.Line(3, 1e-3), 5, 0.03, 0, rand.New(rand.NewPCG(seed, 7))) {
			if p.Bytes <= 64<<10 {
				points = append(points, p)
			}
		}
		piece := fitPiece(bySize(points), 0)
		if piece.Startup.Low <= 3 && 3 <= piece.Startup.High && piece.Startup.Low < piece.Startup.High {
			held++
		}
	}
	if held < 85 {
		t.Errorf("%d of %d intervals of 95 %% hold the start-up", held, tries)
	}
}

// The time at which a piece begins is known better than where its line meets 0 bytes, and an
// interval is never of times below 0.
func TestAPieceKnowsTheTimeOfItsFirstBytes(t *testing.T) {
	truth := model.Curve{
		{Startup: model.Exactly(20), PerByte: model.Exactly(1e-3)},
		{From: 512 << 10, Startup: model.Exactly(-300), PerByte: model.Exactly(2e-3)},
	}
	c := Fit(synthetic(truth, 5, 0.05, 0.1, rand.New(rand.NewPCG(3, 0))))
	if len(c) != 2 {
		t.Fatalf("%d pieces: want 2", len(c))
	}
	for _, piece := range c {
		e := piece.Time
		near(t, "the time of the first bytes", e.Value, truth.Time(float64(piece.From)), 0.1)
		if near(t, "the time on the line", e.Value, c.Time(float64(piece.From)), 1e-9); e.Low < 0 || e.Low > e.Value || e.High < e.Value || e.High > 1.5*e.Value {
			t.Errorf("the interval of the time from %d bytes is %+v", piece.From, e)
		}
	}
}

// Two sizes, each of one point, are enough for the slope of every resample.
func TestAnIntervalOfASlopeIsNeverOfOneSizeAlone(t *testing.T) {
	piece := fitPiece([][]Point{{{1 << 20, 100}}, {{2 << 20, 200}}, {{4 << 20, 400}}}, 1<<20)
	if e := piece.PerByte; e.Low < 0.9*e.Value || e.High > 1.1*e.Value {
		t.Errorf("the interval of the slope is %+v: want no more than a tenth", e)
	}
}

// rowsOf returns rows of a number of bytes each, with a time.
func rowsOf(time func(bytes int) float64, bytes ...int) (rows []bench.Row) {
	for _, n := range bytes {
		for range 3 {
			rows = append(rows, bench.Row{Call: bench.Call{Bytes: n}, Times: bench.Times{Median: time(n)}})
		}
	}
	return rows
}

// A machine whose costs are known: a call of 0.1 µs, a step of 0.2, messages of 2 + n/1000, of
// which their senders take 0.2 + n/5000, or from 8 KiB on n/4000, and their receivers
// 0.3 + n/2000; and switches of 3.
func TestALinkIsMadeOfWhatItsRowsHaveInCommon(t *testing.T) {
	const call, step, switching, rendezvous = 0.1, 0.2, 3.0, 8192
	sizes := []int{8, 64, 512, 4096, rendezvous, 32768, 65536, 131072, 262144}
	constant := func(x float64) func(int) float64 { return func(int) float64 { return x } }
	message := func(n int) float64 { return call + step + 2 + float64(n)/1000 }
	receive := func(n int) float64 { return 0.3 + float64(n)/2000 }
	send := func(n int) float64 {
		if n >= rendezvous {
			return float64(n) / 4000
		}
		return step + float64(n-8)/5000 // as much as the step of the shortest
	}
	shared := func(n int) float64 { return PerProcessor * (call + step + send(n) + receive(n) + switching) }
	l, err := Link("shm", 2, Rows{
		OneWay:   rowsOf(message, sizes...),
		Exchange: rowsOf(func(n int) float64 { return message(n) + 0.5 }, sizes...),
		Send: rowsOf(func(n int) float64 {
			if n >= rendezvous {
				return float64(bench.Lateness(n).Microseconds()) + message(n)
			}
			return call + step + send(n)
		}, sizes...),
		Receive: rowsOf(func(n int) float64 { return call + step + receive(n) }, sizes...),
		Shared:  rowsOf(shared, sizes...),
		Turns: turnRows(t, model.Link{
			Transport: "shm", OneWay: model.Line(2, 0.001), Exchange: model.Line(2.5, 0.001), Send: model.Line(0.2, 0.0002), Receive: model.Line(0.3, 0.0005),
			RendezvousFrom: rendezvous, Capacity: shm.Capacity, Call: model.Exactly(call), Step: model.Exactly(step), Switch: model.Exactly(switching),
		}),
		Call:   rowsOf(constant(call), 8),
		Rate:   rowsOf(constant(16*0.4), 8),
		Before: Observe(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"call", l.Call.Value, call}, {"step", l.Step.Value, step}, {"gap", l.Gap.Value, 0.4},
		{"one way", l.OneWay.Time(4096), 2 + 4.096}, {"exchange", l.Exchange.Time(4096), 2.5 + 4.096},
		{"the first size of a rendezvous", float64(l.RendezvousFrom), rendezvous},
		{"send", l.Send.Time(512), send(512)}, {"receive", l.Receive.Time(512), receive(512)},
		{"a rendezvous' send", l.Send.Time(131072), send(131072)},
	} {
		near(t, c.what, c.got, c.want, 1e-6)
	}
	near(t, "a switch, although the shift differs from its simulation", l.Switch.Value, switching, 0.01)
}

// turnRows returns what the calls take that tell the cost of a switch, on a machine.
func turnRows(t *testing.T, l model.Link) (all [][]bench.Row) {
	for _, c := range TurnCalls {
		call := predict.Call{Collective: c.Collective, Algorithm: c.Algorithm, Ranks: 2 * PerProcessor, Bytes: 8, Transport: l.Transport}
		µs, err := predict.TimeInLoop(&model.Profile{Node: model.Node{Processors: 2}, Links: []model.Link{l}}, call, bench.RotatingRoot)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rowsOf(func(int) float64 { return µs }, 8))
	}
	return all
}

func TestALinkThatIsNotMeasuredWhollyIsRefused(t *testing.T) {
	if _, err := Link("shm", 2, Rows{}); err == nil {
		t.Error("a link of no rows: want an error")
	}
	some := rowsOf(func(int) float64 { return 1 }, 8, 64, 512)
	rows := Rows{OneWay: some, Exchange: some, Send: some, Receive: some, Pipeline: some, Call: some, Rate: some, Before: Observe()}
	if _, err := Link("shm", 2, rows); err == nil {
		t.Error("a link without ranks that share a processor: want an error")
	}
	if l, err := Between("tcp", 2, rows); err != nil || l.Switch.Value != 0 || l.Send != nil {
		t.Errorf("a link between hosts: %v, with a switch of %g and a sending part %v: want one without", err, l.Switch.Value, l.Send)
	}
}

func TestANodeIsMeasuredInPositiveNumbers(t *testing.T) {
	n, err := MeasureNode(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Combine) != len(combinations) || len(n.Memory) == 0 || n.Bandwidth() <= 0 || n.Processors < 1 {
		t.Errorf("got %+v", n)
	}
	for bytes := 1.0; bytes <= 64<<20; bytes *= 4 {
		if x := n.Copy.Time(bytes); math.IsNaN(x) || x < 0 || bytes >= 64<<10 && x == 0 {
			t.Errorf("a copy of %g bytes takes %g µs", bytes, x)
		}
	}
	if !slices.IsSortedFunc(n.Memory, func(a, b model.Bandwidth) int { return a.Movers - b.Movers }) {
		t.Errorf("movers are not in order: %+v", n.Memory)
	}
}
