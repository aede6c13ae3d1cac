package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/topo"
)

// withCandidates returns the simulations of an operation; if the best are wanted, one for
// each algorithm where none is named.
func withCandidates(each []*simulation, arg string, best int) (all []*simulation) {
	c, err := sched.ParseCollective(arg)
	if best == 0 || err != nil {
		return each
	}
	for _, s := range each {
		if s.algorithm != "" {
			all = append(all, s)
			continue
		}
		for _, spec := range s.candidates(c) {
			one := *s
			one.algorithm = spec
			all = append(all, &one)
		}
	}
	return all
}

// candidates returns the algorithms that may take the least time: each of the catalog, and
// those of two levels with each algorithm between hosts, and several numbers of leaders.
func (s *simulation) candidates(c sched.Collective) (specs []string) {
	least := 1
	if t, err := parseTopology(s.topology, s.p); err == nil && s.topology != "" {
		if hosts, ok := t.(*topo.Hosts); ok {
			least = hosts.Size(0)
			for i := range hosts.Count() {
				least = min(least, hosts.Size(i))
			}
		}
	}
	for _, a := range algo.For(c) {
		if a.Restrictions.Allow(s.p) != nil {
			continue
		}
		one := []string{a.Name}
		for _, p := range a.Params {
			var values []string
			switch {
			case a.Name != twoLevels:
			case p.Key == "between":
				values = strings.Split(p.Values, "|")
			case p.Key == "leaders":
				values = leaderCounts(least)
			}
			one = withValues(one, p.Key, values)
		}
		specs = append(specs, one...)
	}
	return specs
}

// twoLevels is the name of the algorithms that know which ranks share a host.
const twoLevels = "hierarchical"

// withValues returns each spec with each value of a parameter; or if there are none, as
// it is.
func withValues(specs []string, key string, values []string) (all []string) {
	if len(values) == 0 {
		return specs
	}
	for _, spec := range specs {
		for _, v := range values {
			all = append(all, spec+","+key+"="+v)
		}
	}
	return all
}

// fastest returns so many rows of each call and network that take the least time, and for
// each call on several hosts what two levels are worth.
func fastest(rows []simulated, best int) (kept []simulated, notes []string) {
	call := func(r simulated) string { return fmt.Sprint(r.Collective, " ", r.P, " ", r.M, " ", r.Topology) }
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r simulated) bool { return call(r) != call(rows[0]) })
		if n < 0 {
			n = len(rows)
		}
		group := slices.Clone(rows[:n])
		rows = rows[n:]
		slices.SortStableFunc(group, func(a, b simulated) int { return cmp.Compare(a.Time, b.Time) })
		if note := levelsNote(group); note != "" {
			notes = append(notes, note)
		}
		kept = append(kept, group[:min(best, len(group))]...)
	}
	return kept, notes
}

// levelsNote says how the best algorithm of two levels compares with the best of one, of
// rows in the order of time; "" if there are not both.
func levelsNote(rows []simulated) string {
	if !strings.HasPrefix(rows[0].Topology, "hosts:") {
		return ""
	}
	two := slices.IndexFunc(rows, func(r simulated) bool { return nameOfSpec(r.Algorithm) == twoLevels })
	one := slices.IndexFunc(rows, func(r simulated) bool { return nameOfSpec(r.Algorithm) != twoLevels })
	if two < 0 || one < 0 {
		return ""
	}
	name, params, _ := strings.Cut(rows[two].Algorithm, ",")
	return fmt.Sprintf("%s, m = %d: two levels (%s) take %s of the time of one (%s)",
		rows[0].Collective, rows[0].M, cmp.Or(strings.ReplaceAll(params, ",", ", "), name), ratio(rows[two].Time/rows[one].Time), rows[one].Algorithm)
}
