package draw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// partTexts describes each part of the scene.
func partTexts(s Scene) []string {
	var texts []string
	for _, part := range s.Parts {
		sc := part.Schedule
		text := fmt.Sprintf("%v %s on %s", sc.Collective, sc.Algorithm, plural(sc.P, "rank"))
		if sc.Collective.Rooted() {
			text += fmt.Sprintf(" with root %d", sc.Root)
		}
		if sc.Collective == sched.Shift {
			text += fmt.Sprintf(" by %d", sc.Root)
		}
		if sc.Collective != sched.Barrier {
			text += ", m = " + plural(part.Words, "word")
		}
		texts = append(texts, text)
	}
	return texts
}

// networkText describes the network and the rules of the simulation.
func networkText(r *sim.Result) string {
	c := r.Config
	pick := func(cond bool, ifTrue, ifFalse string) string {
		if cond {
			return ifTrue
		}
		return ifFalse
	}
	facts := []string{
		fmt.Sprintf("%s on %v, %s and %s", plural(r.Ranks, "rank"), c.Topology, plural(c.Topology.Processors(), "processor"), plural(c.Topology.LinkCount(), "link")),
		pick(c.AllPort, "all ports at once", "one port out and one in"),
		pick(c.StoreAndForward, "store and forward", "cut-through"),
		pick(c.Share, "messages share a link", "messages wait for a link"),
	}
	if c.Sync {
		facts = append(facts, "ranks begin each step together")
	}
	if c.MemoryBandwidth > 0 {
		facts = append(facts, "a node's memory moves "+formatTime(c.MemoryBandwidth)+" words per time unit")
	}
	return strings.Join(facts, "; ")
}

func modelText(r *sim.Result) string {
	m := r.Config.Model
	return fmt.Sprintf("ts %s, tw %s, th %s, top %s", formatTime(m.Ts), formatTime(m.Tw), formatTime(m.Th), formatTime(m.Top))
}

func pageTotals(r *sim.Result) []pageTotal {
	load, messages, _ := strings.Cut(plural(r.MaxLinkLoad, "message"), " ")
	return []pageTotal{
		{"Total time", formatTime(r.Time), "time units"},
		{"Steps", strconv.Itoa(r.Steps), ""},
		{"Messages", strconv.Itoa(r.Messages), ""},
		{"Words in all messages", strconv.Itoa(r.Words), "words"},
		{"Max link load", load, messages},
	}
}

// messageName returns the name of a message in a page.
func messageName(from, to int) string { return fmt.Sprintf("%d→%d", from, to) }
