package sim_test

import (
	"fmt"
	"math"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

func sendPort(rank int) string { return fmt.Sprintf("rank %d to send", rank) }
func recvPort(rank int) string { return fmt.Sprintf("rank %d to receive", rank) }

// differs says where a result is not what the naive simulation found, or is not
// consistent with itself; "" if it is.
func (n *naive) differs(r *sim.Result) string {
	n.number()
	want := &sim.Result{Ranks: len(n.ranks), Messages: len(n.messages), Steps: r.Steps, PerStep: n.perStep(r.Steps), Log: n.log(), Path: r.Path}
	for _, rank := range n.ranks {
		want.PerRank = append(want.PerRank, rank.did)
		want.Time = max(want.Time, rank.did.End)
	}
	for _, s := range want.PerStep {
		want.Words += s.Words
		want.MaxLinkLoad = max(want.MaxLinkLoad, s.MaxLinkLoad)
	}
	want.Links = n.links()
	if slices.EqualFunc(want.Log, r.Log, same) {
		want.Log = r.Log // and none of them is compared again, slowly
	}
	if !gocmp.Equal(want, r, butForRounding) {
		return "got - want +\n" + gocmp.Diff(r, want, butForRounding)
	}
	if broken := n.pathBreaks(r); broken != "" {
		return fmt.Sprintf("the critical path: %s\n%+v\ntime %v", broken, r.Path, r.Time)
	}
	return ""
}

var butForRounding = gocmp.Options{gocmp.Comparer(near), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(sim.Result{}, "Config")}

func same(a, b sim.Message) bool {
	times := a
	times.Ready, times.Start, times.End = b.Ready, b.Start, b.End
	return times == b && near(a.Ready, b.Ready) && near(a.Start, b.Start) && near(a.End, b.End)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1e-3+math.Abs(a)+math.Abs(b)) }

// number finds the step of each message: the first that both its ends have come
// to.
func (n *naive) number() {
	known := map[*naiveMessage]int{}
	var ready func(r *naiveRank, step int) int
	stepOf := func(m *naiveMessage) int {
		if _, ok := known[m]; !ok {
			known[m] = max(ready(n.ranks[m.From], m.SendStep), ready(n.ranks[m.To], m.RecvStep))
		}
		return known[m]
	}
	ready = func(r *naiveRank, step int) (first int) {
		if step == 0 {
			return 0
		}
		first = ready(r, step-1)
		for _, m := range r.steps[step-1].messages {
			first = max(first, stepOf(m)+1)
		}
		return first
	}
	for _, m := range n.messages {
		m.Step = stepOf(m)
	}
}

// log returns the messages by step, sender, and index in its program.
func (n *naive) log() (all []sim.Message) {
	for step := 0; len(all) < len(n.messages); step++ {
		for rank := range n.ranks {
			for _, m := range n.messages {
				if m.Step == step && m.From == rank {
					all = append(all, m.Message)
				}
			}
		}
	}
	return all
}

// perStep sums up what happens in each step. What a rank combines after a step
// of its own belongs to the last of the steps of that step's messages.
func (n *naive) perStep(steps int) []sim.Step {
	all := make([]sim.Step, steps)
	loads := make([]map[string]int, steps)
	for i := range loads {
		loads[i] = map[string]int{}
	}
	for _, m := range n.messages {
		s := &all[m.Step]
		if s.Messages == 0 || m.Start < s.Start {
			s.Start = m.Start
		}
		s.End = max(s.End, m.End)
		s.Messages++
		s.Words += m.Words
		for _, link := range m.links {
			loads[m.Step][link]++
		}
	}
	for _, r := range n.ranks {
		for _, s := range r.steps {
			last := 0
			combines := 0
			for i, m := range s.messages {
				last = max(last, m.Step)
				if i >= len(s.messages)-s.takes && m.Combine {
					combines += m.Words
				}
			}
			if combines > 0 {
				all[last].End = max(all[last].End, s.end)
			}
		}
	}
	for id := range 2 * n.Topology.LinkCount() {
		name := "link " + topo.LinkName(n.Topology, id)
		for i := range all {
			all[i].LinksInUse = len(loads[i])
			load := loads[i][name]
			all[i].MaxLinkLoad = max(all[i].MaxLinkLoad, load)
			if load > 1 {
				all[i].Congested = append(all[i].Congested, sim.Load{Link: id, Messages: load})
			}
		}
	}
	return all
}

// links sums up what each link carries.
func (n *naive) links() (all []sim.Link) {
	through := map[string][]*naiveMessage{}
	for _, m := range n.messages {
		for _, link := range m.links {
			through[link] = append(through[link], m)
		}
	}
	for id := range 2 * n.Topology.LinkCount() {
		l := sim.Link{Link: id}
		through := through["link "+topo.LinkName(n.Topology, id)]
		var moments []float64
		for _, m := range through {
			moments = append(moments, m.Start, m.End)
			l.Messages++
			l.Words += m.Words
		}
		slices.Sort(moments)
		for i, from := range moments[:max(0, len(moments)-1)] {
			to := moments[i+1]
			if slices.ContainsFunc(through, func(m *naiveMessage) bool { return m.Start <= from && to <= m.End }) {
				l.Busy += to - from
			}
		}
		if l.Messages > 0 {
			all = append(all, l)
		}
	}
	return all
}

// pathBreaks says where the critical path does not hold: each leg is a message,
// begins as soon as the leg before it lets it, the first at the beginning, and
// the last ends the whole.
func (n *naive) pathBreaks(r *sim.Result) string {
	for i, leg := range r.Path {
		k := slices.IndexFunc(n.messages, func(m *naiveMessage) bool {
			return m.From == leg.From && m.To == leg.To && same(m.Message, leg.Message)
		})
		if k < 0 {
			return fmt.Sprintf("leg %d is no message", i)
		}
		m := n.messages[k]
		if !near(leg.Waited, m.Start-m.Ready) || (leg.WaitedFor != "") != (leg.Waited > 0) {
			return fmt.Sprintf("leg %d has waited %v for %q", i, leg.Waited, leg.WaitedFor)
		}
		if i == 0 {
			if leg.WaitedFor != "" || leg.Ready > n.copied(m)*(1+1e-9) {
				return "the first leg does not start at the beginning"
			}
			continue
		}
		before := r.Path[i-1]
		switch {
		case leg.WaitedFor == "" && !near(before.End+before.ComputeAfter, leg.Ready):
			return fmt.Sprintf("leg %d is not ready when the one before lets it", i)
		case leg.WaitedFor == "" && !n.Sync && leg.From != before.From && leg.From != before.To && leg.To != before.From && leg.To != before.To:
			return fmt.Sprintf("leg %d has no rank in common with the one before", i)
		case leg.WaitedFor != "" && (!near(before.End, leg.Start) || before.ComputeAfter != 0):
			return fmt.Sprintf("leg %d does not start when the one before lets it", i)
		case leg.WaitedFor != "" && !n.holds(before.Message, leg.WaitedFor):
			return fmt.Sprintf("leg %d waits for %s, which the one before does not have", i, leg.WaitedFor)
		}
	}
	if k := len(r.Path); k > 0 && !near(r.Path[k-1].End+r.Path[k-1].ComputeAfter, r.Time) {
		return "the last leg does not end the whole"
	}
	whole := r.Time
	if len(r.Path) == 0 && !slices.ContainsFunc(n.ranks, func(r *naiveRank) bool {
		return !slices.ContainsFunc(r.steps, naiveStep.moves) && near(r.did.End, whole)
	}) && r.Messages > 0 {
		return "empty"
	}
	return ""
}

// copied returns until when copies may hold up a message that waits for no
// other: those of its ends, and with Sync those of others, step after step.
func (n *naive) copied(m *naiveMessage) (at float64) {
	if !n.Sync {
		return n.Model.Top * float64(max(n.ranks[m.From].steps[0].before, n.ranks[m.To].steps[0].before))
	}
	for _, r := range n.ranks {
		for _, s := range r.steps {
			at += n.Model.Top * float64(s.before)
		}
	}
	return at
}

// holds reports whether a message has a port or link while it is under way.
func (n *naive) holds(m sim.Message, resource string) bool {
	return resource == sendPort(m.From) || resource == recvPort(m.To) || slices.ContainsFunc(n.messages, func(o *naiveMessage) bool {
		return o.From == m.From && o.To == m.To && slices.Contains(o.links, resource)
	})
}
