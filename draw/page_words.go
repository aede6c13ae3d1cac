package draw

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
)

// playsOf says what each part of the scene is.
func playsOf(s Scene) []string {
	var all []string
	for _, part := range s.Parts {
		sc := part.Schedule
		text := fmt.Sprintf("%v %s on %s", sc.Collective, sc.Algorithm, amount(sc.P, "rank"))
		if sc.Collective.Rooted() {
			text += fmt.Sprintf(" with root %d", sc.Root)
		}
		if sc.Collective == sched.Shift {
			text += fmt.Sprintf(" by %d", sc.Root)
		}
		if sc.Collective != sched.Barrier {
			text += ", m = " + amount(part.Words, "word")
		}
		all = append(all, text)
	}
	return all
}

// networkOf says on what the scene is played, and by which rules.
func networkOf(r *sim.Result) string {
	c := r.Config
	pick := func(yes bool, this, that string) string {
		if yes {
			return this
		}
		return that
	}
	words := []string{
		fmt.Sprintf("%s on %v, %s and %s", amount(r.Ranks, "rank"), c.Topology, amount(c.Topology.Processors(), "processor"), amount(c.Topology.LinkCount(), "link")),
		pick(c.AllPort, "all ports at once", "one port out and one in"),
		pick(c.StoreAndForward, "store and forward", "cut-through"),
		pick(c.Share, "messages share a link", "messages wait for a link"),
	}
	if c.Sync {
		words = append(words, "ranks begin each step together")
	}
	if c.MemoryBandwidth > 0 {
		words = append(words, "a node's memory moves "+figures(c.MemoryBandwidth)+" words per time unit")
	}
	return strings.Join(words, "; ")
}

func modelOf(r *sim.Result) string {
	m := r.Config.Model
	return fmt.Sprintf("ts %s, tw %s, th %s, top %s", figures(m.Ts), figures(m.Tw), figures(m.Th), figures(m.Top))
}

func totalsOf(r *sim.Result) []pageTotal {
	load, messages, _ := strings.Cut(amount(r.MaxLinkLoad, "message"), " ")
	return []pageTotal{
		{"Total time", figures(r.Time), "time units"},
		{"Steps", strconv.Itoa(r.Steps), ""},
		{"Messages", strconv.Itoa(r.Messages), ""},
		{"Words in all messages", strconv.Itoa(r.Words), "words"},
		{"Max link load", load, messages},
	}
}

// messageName is what a page calls a message.
func messageName(from, to int) string { return fmt.Sprintf("%d→%d", from, to) }

// figures writes a time to six significant figures.
func figures(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	if size := math.Abs(rounded); err != nil || size >= 1e15 || size < 1e-6 {
		return strconv.FormatFloat(rounded, 'g', -1, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
