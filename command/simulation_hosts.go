package command

import (
	"fmt"
	"strconv"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/topo"
)

// betweenCosts are the costs of a message between hosts, where they are not those of any
// message.
type betweenCosts struct{ ts, tw optionalCost }

// given reports whether there are such costs.
func (b betweenCosts) given() bool { return b.ts.given || b.tw.given }

// An optionalCost is the value of a flag that may be left out: a cost.
type optionalCost struct {
	cost
	given bool
}

func (c *optionalCost) String() string {
	if !c.given {
		return ""
	}
	return c.cost.String()
}

func (c *optionalCost) Set(text string) error {
	c.given = true
	return c.cost.Set(text)
}

// or returns the cost, or another one if it was not given.
func (c optionalCost) or(standard float64) float64 {
	if c.given {
		return float64(c.cost)
	}
	return standard
}

// betweenHosts sets the prices between hosts of a scenario whose network is set.
func (s *simulation) betweenHosts(e *scenario) error {
	if !s.between.given() {
		return nil
	}
	t := e.config.Topology
	if _, ok := t.(*topo.Hosts); !ok {
		return fmt.Errorf("--ts-between or --tw-between on %v, which has no hosts: want --topology hosts:4x8, or other sizes", t)
	}
	e.setBetween(model.Model{Ts: s.between.ts.or(float64(s.ts)), Tw: s.between.tw.or(float64(s.tw)), Th: float64(s.th)})
	return nil
}

// setBetween sets the prices between hosts.
func (e *scenario) setBetween(m model.Model) {
	e.config.Between = &m
	e.twoPrices = m.Ts != e.config.Model.Ts || m.Tw != e.config.Model.Tw
}

// cheapest returns the prices for a bound of every message: the lower one of each.
func (e *scenario) cheapest() model.Model {
	m := e.config.Model
	if b := e.config.Between; b != nil {
		m.Ts, m.Tw = min(m.Ts, b.Ts), min(m.Tw, b.Tw)
	}
	return m
}

// placed says which ranks share a host.
type placed struct {
	text        string // as the parameter hosts of algorithms has it; "" for a topology without hosts
	hosts, most int    // the number of hosts, and the most ranks on one
}

// hosts returns which of the ranks on the topology share a host.
func (s *simulation) hosts(p int) (on placed, err error) {
	t, err := parseTopology(s.topology, p)
	if s.topology == "" || err != nil {
		return on, nil // an error that network reports
	}
	hosts, ok := t.(*topo.Hosts)
	if !ok {
		return on, nil
	}
	at := topo.Identity(p)
	if s.placement != "identity" {
		if at, err = topo.ParsePlacement(s.placement, t); err != nil {
			return on, withNearest(err)
		}
	}
	list := make([]int, p)
	for r := range list {
		list[r] = hosts.Host(at[r])
		on.most = max(on.most, hosts.Size(list[r]))
	}
	on.text, on.hosts = algo.FormatHosts(list), hosts.Count()
	return on, nil
}

// betweenText says what a message between hosts costs.
func betweenText(m model.Model) string {
	return fmt.Sprintf("between hosts ts %s, tw %s", decimal(m.Ts), decimal(m.Tw))
}

// leaderCounts returns numbers of leaders to try on hosts of which the smallest has some
// ranks: powers of two, and all.
func leaderCounts(least int) (counts []string) {
	for k := 1; k < least; k *= 2 {
		counts = append(counts, strconv.Itoa(k))
	}
	return append(counts, strconv.Itoa(least))
}
