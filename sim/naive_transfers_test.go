package sim_test

import (
	"math"
	"slices"
)

// How the naive simulation lets messages share links and memories.

// pass lets words flow for a time.
func (n *naive) pass(time float64) {
	for _, m := range n.messages {
		if m.flows {
			m.left -= m.rate * time
		}
	}
}

// divide gives every message under way its rate: all rise together, and one
// after another stops where it cannot have more.
func (n *naive) divide() {
	var rising []*naiveMessage
	capacity := map[string]float64{}
	users := map[string][]*naiveMessage{}
	for _, m := range n.messages {
		m.flows = m.started && !m.over && notAfter(m.flowsAt, n.now)
		if !m.flows {
			continue
		}
		m.rate, m.rises = 0, true
		rising = append(rising, m)
		for _, c := range n.channels(m) {
			users[c] = append(users[c], m)
			capacity[c] = 1 / n.Model.Tw
			if !slices.Contains(m.links, c) {
				capacity[c] = n.MemoryBandwidth
			}
		}
	}
	room := func(c string) float64 {
		left := capacity[c]
		for _, m := range users[c] {
			left -= m.rate
		}
		return left
	}
	for len(rising) > 0 {
		more := math.Inf(1)
		for _, m := range rising {
			more = min(more, n.alone(m)-m.rate)
			for _, c := range n.channels(m) {
				still := 0
				for _, u := range users[c] {
					if u.rises {
						still++
					}
				}
				more = min(more, room(c)/float64(still))
			}
		}
		for _, m := range rising {
			m.rate += more
		}
		rising = slices.DeleteFunc(rising, func(m *naiveMessage) bool {
			m.rises = m.rate < n.alone(m)*(1-1e-9) && !slices.ContainsFunc(n.channels(m), func(c string) bool { return room(c) <= capacity[c]*1e-9 })
			return !m.rises
		})
	}
}

// channels are what a message shares with others while its words are under way.
func (n *naive) channels(m *naiveMessage) (all []string) {
	if n.Share && n.Model.Tw > 0 {
		all = append(all, m.links...)
	}
	if n.MemoryBandwidth > 0 {
		all = append(all, sendPort(m.From), recvPort(m.To))
	}
	return all
}
