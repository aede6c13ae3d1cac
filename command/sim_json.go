package command

import (
	"math"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A simulated is the JSON form of sim's output. The object is flat.
type simulated struct {
	simCall
	simConfig
	simTotals
	simComparison
	simLoads
}

// simCall is the call that was simulated.
type simCall struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algorithm"`
	Chosen     *string `json:"chosen"`
	P          int     `json:"p"`
	Root       int     `json:"root"`
}

// simConfig is the network and its rules.
type simConfig struct {
	Topology        string     `json:"topology"`
	Network         simNetwork `json:"network"`
	Placement       string     `json:"placement"`
	Transport       string     `json:"transport,omitempty"`
	Model           simModel   `json:"model"`
	Ports           string     `json:"ports"`
	Switching       string     `json:"switching"`
	Congestion      string     `json:"congestion"`
	MemoryBandwidth float64    `json:"memoryBandwidth"`
	Sync            bool       `json:"sync"`
	M               int        `json:"m"`
}

// simTotals is the result as a whole.
type simTotals struct {
	Steps    int     `json:"steps"`
	Messages int     `json:"messages"`
	Words    int     `json:"words"`
	Time     float64 `json:"time"`
}

// simComparison relates the time to the formula and to the lower bounds.
type simComparison struct {
	Formula         *float64  `json:"formula"`
	FormulaText     *string   `json:"formulaText"`
	Ratio           *float64  `json:"ratio"`
	Differs         []string  `json:"differs"`
	LowerBound      float64   `json:"lowerBound"`
	LowerBoundRatio *float64  `json:"lowerBoundRatio"`
	Bounds          simBounds `json:"bounds"`
}

// simLoads is the result by link, step and rank.
type simLoads struct {
	MaxLinkLoad int            `json:"maxLinkLoad"`
	Congested   []simCongested `json:"congested"`
	PerStep     []simStep      `json:"perStep"`
	PerRank     []simRank      `json:"perRank,omitempty"`
	Path        []simLeg       `json:"path"`
	Links       []simLink      `json:"links,omitempty"`
}

type simNetwork struct {
	Processors int  `json:"processors"`
	Switches   int  `json:"switches"`
	Links      int  `json:"links"`
	Diameter   int  `json:"diameter"`
	Bisection  *int `json:"bisection"`
	Ports      int  `json:"ports"`
}

func newSimNetwork(t topo.Topology) simNetwork {
	n := simNetwork{t.Processors(), t.Switches(), t.LinkCount(), t.Diameter(), nil, t.Ports()}
	if width, known := t.Bisection(); known {
		n.Bisection = &width
	}
	return n
}

type simModel struct {
	Ts  float64 `json:"ts"`
	Tw  float64 `json:"tw"`
	Th  float64 `json:"th"`
	Top float64 `json:"top"`

	TsBetween *float64 `json:"tsBetween,omitempty"`
	TwBetween *float64 `json:"twBetween,omitempty"`
}

func newSimModel(c sim.Config) simModel {
	m := simModel{Ts: c.Model.Ts, Tw: c.Model.Tw, Th: c.Model.Th, Top: c.Model.Top}
	if b := c.Between; b != nil {
		m.TsBetween, m.TwBetween = &b.Ts, &b.Tw
	}
	return m
}

type simBounds struct {
	Startups simBound `json:"startups"`
	Words    simBound `json:"words"`
	Combines simBound `json:"combines"`
}

type simBound struct {
	Time  float64  `json:"time"`
	Ratio *float64 `json:"ratio"`
}

type simCongested struct {
	Step     int    `json:"step"`
	Link     string `json:"link"`
	Messages int    `json:"messages"`
}

type simStep struct {
	Messages    int     `json:"messages"`
	Words       int     `json:"words"`
	Start       float64 `json:"start"`
	End         float64 `json:"end"`
	LinksInUse  int     `json:"linksInUse"`
	MaxLinkLoad int     `json:"maxLinkLoad"`
}

type simRank struct {
	Sent          int     `json:"sent"`
	Received      int     `json:"received"`
	SentWords     int     `json:"sentWords"`
	ReceivedWords int     `json:"receivedWords"`
	Sending       float64 `json:"sending"`
	Receiving     float64 `json:"receiving"`
	Combining     float64 `json:"combining"`
	End           float64 `json:"end"`
}

type simLeg struct {
	Step   int     `json:"step"`
	From   int     `json:"from"`
	To     int     `json:"to"`
	Words  int     `json:"words"`
	Hops   int     `json:"hops"`
	Ready  float64 `json:"ready"`
	Start  float64 `json:"start"`
	End    float64 `json:"end"`
	Waited float64 `json:"waited"`
	For    string  `json:"for"`
	After  float64 `json:"after"`
}

type simLink struct {
	Link     string  `json:"link"`
	Messages int     `json:"messages"`
	Words    int     `json:"words"`
	Busy     float64 `json:"busy"`
}

// newSimulated returns the JSON form of a result; with ranks, if it is detailed.
func newSimulated(e *scenario, r *sim.Result, detailed bool) simulated {
	s := simulated{
		simCall:       simCall{Collective: e.collective, Algorithm: e.algorithm, P: e.p, Root: e.root},
		simConfig:     newSimConfig(e),
		simTotals:     simTotals{Steps: r.Steps, Messages: r.Messages, Words: r.Words, Time: r.Time},
		simComparison: newSimComparison(e, r),
		simLoads:      newSimLoads(r, detailed),
	}
	if e.chosen != "" {
		s.Chosen = &e.chosen
	}
	return s
}

func newSimConfig(e *scenario) simConfig {
	c := e.config
	return simConfig{
		Topology: c.Topology.String(), Network: newSimNetwork(c.Topology), Placement: e.placement, Transport: e.transport,
		Model: newSimModel(c), Ports: portsOf(c), Switching: switchingOf(c), Congestion: congestionOf(c),
		MemoryBandwidth: c.MemoryBandwidth, Sync: c.Sync, M: e.m,
	}
}

func newSimComparison(e *scenario, r *sim.Result) simComparison {
	b := e.bounds(r)
	s := simComparison{
		Differs: e.differs(r), LowerBound: b.sum.time, LowerBoundRatio: number(b.sum.ratio),
		Bounds: simBounds{b.startups.json(), b.words.json(), b.combines.json()},
	}
	if e.formula != nil {
		f := e.compare(r, e.formula.cost)
		s.Formula, s.FormulaText, s.Ratio = number(f.time), &e.formula.text, number(f.ratio)
	}
	return s
}

func newSimLoads(r *sim.Result, detailed bool) simLoads {
	s := simLoads{MaxLinkLoad: r.MaxLinkLoad, Congested: []simCongested{}, PerStep: []simStep{}, Path: []simLeg{}}
	for i, step := range r.PerStep {
		s.PerStep = append(s.PerStep, simStep{step.Messages, step.Words, step.Start, step.End, step.LinksInUse, step.MaxLinkLoad})
		for _, l := range step.Congested {
			s.Congested = append(s.Congested, simCongested{i + 1, r.Name(l.Link), l.Messages})
		}
	}
	if detailed {
		for _, k := range r.PerRank {
			s.PerRank = append(s.PerRank, simRank{k.Sent, k.Received, k.SentWords, k.ReceivedWords, k.Sending, k.Receiving, k.Combining, k.End})
		}
	}
	for _, l := range r.Path {
		s.Path = append(s.Path, simLeg{l.Step + 1, l.From, l.To, l.Words, l.Hops, l.Ready, l.Start, l.End, l.Waited, l.WaitedFor, l.ComputeAfter})
	}
	for _, l := range r.Links {
		s.Links = append(s.Links, simLink{r.Name(l.Link), l.Messages, l.Words, l.Busy})
	}
	return s
}

func (r reference) json() simBound { return simBound{r.time, number(r.ratio)} }

// number returns nil for NaN.
func number(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}
