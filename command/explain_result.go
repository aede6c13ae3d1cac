package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/explain"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// An explanation is the answer of explain. Times are in microseconds. Its JSON form is that
// of --format json.
type explanation struct {
	Collective string `json:"collective"`
	Algorithm  string `json:"algorithm"` // that is explained
	Named      bool   `json:"named"`     // by --algorithm
	Selected   string `json:"selected"`  // that a call runs by itself
	Why        string `json:"why"`       // it does
	Ranks      int    `json:"p"`
	Root       int    `json:"root"`
	Bytes      int    `json:"bytes"`
	Transport  string `json:"transport"`
	Processors int    `json:"processors"` // for the selection; 0 if each rank has one
	Hosts      string `json:"hosts,omitempty"`

	Profile      *profileUsed   `json:"profile"`
	Predicted    *float64       `json:"predicted"`
	NotPredicted string         `json:"notPredicted,omitempty"` // why
	Parts        []explain.Part `json:"parts"`

	Prices     *prices    `json:"model"`
	Formula    *costGiven `json:"formula"`
	LowerBound costGiven  `json:"lowerBound"`

	Measured *measuredTime   `json:"measured,omitempty"`
	Rivals   []rival         `json:"rivals"` // without the one that is explained, the fastest first
	BySize   []explain.Range `json:"bySize"`
	ByRanks  []explain.Range `json:"byRanks"`

	SimulatedSizes []int `json:"simulatedSizes"` // for the fastest of each range
	SimulatedRanks []int `json:"simulatedRanks"`
}

// A profileUsed says which profile the prediction is from.
type profileUsed struct {
	File       string    `json:"file"`
	Made       time.Time `json:"made"`
	Host       string    `json:"host"`
	Processors int       `json:"processors"` // that are simulated, on each host
	Hosts      int       `json:"hosts"`
	Between    string    `json:"between,omitempty"` // the transport between hosts
	Quiet      bool      `json:"quiet"`
}

// prices are those of the textbook's model on the line on which a message of all bytes is.
type prices struct {
	Startup float64 `json:"ts"`
	PerByte float64 `json:"tw"`
	Combine float64 `json:"top"` // per byte
}

// A costGiven is a cost, and its time where there are prices.
type costGiven struct {
	Text     string   `json:"text,omitempty"` // the formula
	Startups float64  `json:"startups"`
	Bytes    float64  `json:"bytes"`
	Combined float64  `json:"combined"` // bytes
	Time     *float64 `json:"time"`
	Ratio    *float64 `json:"ratio"` // the predicted time over this one
}

// A rival is another algorithm.
type rival struct {
	explain.Rival
	Measured *measuredTime `json:"measured,omitempty"`
}

// A measuredTime is what a call took.
type measuredTime struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	P99    float64 `json:"p99"`
	Stable bool    `json:"stable"`
}

// price sets the formula and the lower bound, and their times if there is a profile. On several
// hosts the formula has the prices between hosts, and the bound the lower ones, because it has
// to hold for messages within a host as well.
func (e *explanation) price(m *explain.Machine, c explain.Call) error {
	var lowest *prices
	if m != nil {
		link, err := m.Link()
		if err != nil {
			return err
		}
		within, err := m.Profile.Link(m.Transport)
		if err != nil {
			return err
		}
		e.Prices, lowest = pricesOf(m.Profile, link, c), pricesOf(m.Profile, within, c)
		lowest.Startup, lowest.PerByte = min(lowest.Startup, e.Prices.Startup), min(lowest.PerByte, e.Prices.PerByte)
	}
	n := whole(c.Collective, c.Ranks, c.Bytes)
	bound := algo.LowerBound(c.Collective, c.Ranks, float64(n))
	if c.Collective == sched.Shift && c.Root == 0 {
		bound = model.Cost{}
	}
	e.LowerBound = e.given("", bound, lowest)
	cost, err := algo.Price(c.Collective, c.Algorithm, c.Ranks, c.Root, n, float64(n))
	if errors.Is(err, algo.ErrNoFormula) {
		return nil
	}
	if err != nil {
		return err
	}
	a, err := algo.Lookup(c.Collective, nameOfSpec(c.Algorithm))
	if err != nil {
		return err
	}
	formula := e.given(a.Formula, cost, e.Prices)
	e.Formula = &formula
	return nil
}

// pricesOf returns the prices on the line on which a call's messages of all bytes are.
func pricesOf(p *model.Profile, link model.Link, c explain.Call) *prices {
	element := float64(c.ElementBytes())
	m := predict.TextbookModel(p, link, c.ElementBytes(), float64(c.Bytes))
	return &prices{m.Ts, m.Tw / element, m.Top / element}
}

// given returns a cost with its time.
func (e *explanation) given(text string, c model.Cost, at *prices) costGiven {
	g := costGiven{Text: text, Startups: c.Startups, Bytes: c.Words, Combined: c.Combines}
	if at == nil {
		return g
	}
	time := model.Model{Ts: at.Startup, Tw: at.PerByte, Top: at.Combine}.Time(c)
	g.Time = &time
	if e.Predicted != nil && time > 0 {
		ratio := *e.Predicted / time
		g.Ratio = &ratio
	}
	return g
}

// measured measures the call, and the next best one if there is a prediction.
func (x *explainer) measured(ctx context.Context, e *explanation) error {
	specs := []string{x.algorithm}
	if len(e.Rivals) > 0 {
		specs = append(specs, e.Rivals[0].Algorithm)
	}
	config := benchConfig{
		Collectives: []string{e.Collective}, Named: true, Algorithms: specs, Root: bench.RotatingRoot,
		Sizes: []int{e.Bytes}, Count: 1, Time: 200 * time.Millisecond, Verify: true,
	}
	if x.root != 0 && x.collective.Rooted() {
		config.Root = x.root
	}
	cells, _, err := config.cells(e.Ranks)
	if err == nil {
		err = affordable(cells, e.Ranks)
	}
	if err != nil {
		return callErrorf("--measure: %w", err)
	}
	m := measurement{config: config, progress: terminal(os.Stderr)}
	m.showProgress("measuring %s", e.Collective)
	defer m.showProgress("")
	if err := m.runJob(ctx, benchJob{ranks: e.Ranks, transport: e.Transport}); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if len(m.Rows) != len(specs) {
		return fmt.Errorf("%d of %s measured", len(m.Rows), plural(len(specs), "call"))
	}
	for i, row := range m.Rows {
		took := &measuredTime{row.Median, row.Min, row.P99, row.Stable}
		if i == 0 {
			e.Measured = took
		} else {
			e.Rivals[0].Measured = took
		}
	}
	return nil
}
