package model

import (
	"fmt"
	"math"
)

// SelectionVersion is the version of the selections that this package reads and writes. A
// change of what a field means is a new version.
const SelectionVersion = 1

// A Selection says which algorithms the calls of a machine's jobs take over one transport, in
// place of the built-in choices. It is for ranks that share one host, and as many processors
// as it says. The command chorale tune --select makes it.
type Selection struct {
	Version    int    `json:"version"`
	Transport  string `json:"transport"`
	Origin     Origin `json:"origin"`
	Processors int    `json:"processors"` // that the ranks share
	Rules      []Rule `json:"rules"`
}

// A Rule is an algorithm for the calls of a collective on a number of ranks, from so many
// bytes to so many. Bytes are those of the vector, or of one part where the vector is one
// part per rank. No two rules of a selection are for the same call.
type Rule struct {
	Collective string `json:"collective"`
	Ranks      int    `json:"ranks"`
	From       int    `json:"from"`
	To         int    `json:"to"`        // the last that the rule is for
	Algorithm  string `json:"algorithm"` // with its parameters

	// The reason: what a call of Bytes takes by the algorithm and by the one that is built
	// in, in µs. Predicted times are those of a simulation.
	Predicted   bool    `json:"predicted"`
	Bytes       int     `json:"bytes"`
	Time        float64 `json:"time"`
	BuiltIn     string  `json:"builtIn"`
	BuiltInTime float64 `json:"builtInTime"`
}

// Covers reports whether a rule is for calls of so many bytes.
func (r *Rule) Covers(bytes int) bool { return r.From <= bytes && bytes <= r.To }

// SetSelection adds a selection to the profile, or replaces that of the same transport.
func (p *Profile) SetSelection(s Selection) {
	for i := range p.Selections {
		if p.Selections[i].Transport == s.Transport {
			p.Selections[i] = s
			return
		}
	}
	p.Selections = append(p.Selections, s)
}

// validate returns what is wrong with a selection.
func (s *Selection) validate() error {
	if s.Version != SelectionVersion {
		return fmt.Errorf("a selection of version %d for %s: want version %d: chorale tune --select makes one", s.Version, s.Transport, SelectionVersion)
	}
	if s.Processors < 1 {
		return fmt.Errorf("the selection for %s has %d processors: want 1 or more", s.Transport, s.Processors)
	}
	for i := range s.Rules {
		r := &s.Rules[i]
		positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
		switch {
		case r.Collective == "" || r.Algorithm == "":
			return fmt.Errorf("rule %d of the selection for %s names no collective or no algorithm", i+1, s.Transport)
		case r.Ranks < 1 || r.From < 0 || r.To < r.From:
			return fmt.Errorf("rule %d of the selection for %s is for %d ranks, and %d to %d bytes: want 1 rank or more, and bytes from 0 on, in order", i+1, s.Transport, r.Ranks, r.From, r.To)
		case !positive(r.Time) || !positive(r.BuiltInTime):
			return fmt.Errorf("rule %d of the selection for %s has times of %v and %v µs: want more than 0", i+1, s.Transport, r.Time, r.BuiltInTime)
		}
		for k := range s.Rules[:i] {
			if o := &s.Rules[k]; o.Collective == r.Collective && o.Ranks == r.Ranks && o.From <= r.To && r.From <= o.To {
				return fmt.Errorf("rules %d and %d of the selection for %s are for the same calls: %s on %d ranks", k+1, i+1, s.Transport, r.Collective, r.Ranks)
			}
		}
	}
	return nil
}
