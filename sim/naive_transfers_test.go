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
			capacity[c] = n.MemoryBandwidth
			if slices.Contains(m.links, c) {
				capacity[c] = n.carries(c)
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
	if n.Share {
		all = slices.DeleteFunc(slices.Clone(m.links), func(link string) bool { return math.IsInf(n.carries(link), 1) })
	}
	if n.MemoryBandwidth > 0 {
		all = append(all, sendPort(m.From), recvPort(m.To))
	}
	return all
}

// carries is the bandwidth of a link: between two hosts that of their messages, and between
// a rank and its host that of the fastest.
func (n *naive) carries(link string) float64 {
	switch {
	case n.Between == nil:
		return 1 / n.Model.Tw
	case toNetwork(link):
		return 1 / n.Between.Tw
	}
	return max(1/n.Model.Tw, 1/n.Between.Tw)
}
