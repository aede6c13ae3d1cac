package launch

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// assembleTimeout bounds the time from the beginning of a control server of ranks until
// all of them have joined: pods and batch steps do not begin together.
const assembleTimeout = 5 * time.Minute

// An assembly is the time until all ranks have joined, where a rank serves the control
// connections. Its ranks are answered together, since the answer says which of them
// share a host.
type assembly struct {
	limit *time.Timer // nil where a launcher knows all that at once
}

func newAssembly(c *control) assembly {
	return assembly{time.AfterFunc(assembleTimeout, c.refuseAssembly)}
}

func (a assembly) stop() {
	if a.limit != nil {
		a.limit.Stop()
	}
}

// assemble answers all ranks if the last of them has joined.
func (c *control) assemble() {
	if slices.ContainsFunc(c.members, func(m member) bool { return m.conn == nil }) {
		return
	}
	c.assembly.stop()
	joined := layout(c.members)
	for rank := range c.members {
		c.send(rank, message{Joined: &joined})
	}
}

// refuseAssembly refuses the ranks that have joined, since others have not.
func (c *control) refuseAssembly() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []int
	for rank := range c.members {
		if c.members[rank].conn == nil {
			missing = append(missing, rank)
		}
	}
	why := fmt.Sprintf("of %d ranks, %s have not joined within %v", c.size, rankList(missing), assembleTimeout)
	for rank := range c.members {
		c.send(rank, message{Refused: why})
	}
}

// layout numbers the hosts in the order of their lowest ranks, and returns the number of
// processors of the host that has the fewest.
func layout(members []member) joinedMessage {
	numbers := make(map[string]int)
	j := joinedMessage{Hosts: make([]int, len(members)), Processors: members[0].Processors}
	for rank, m := range members {
		number, known := numbers[m.Host]
		if !known {
			number = len(numbers)
			numbers[m.Host] = number
		}
		j.Hosts[rank] = number
		j.Processors = min(j.Processors, m.Processors)
	}
	return j
}

// rankList returns ranks as a person reads them, as in "ranks 0–3 and 7".
func rankList(ranks []int) string {
	var runs []string
	for i := 0; i < len(ranks); {
		end := i + 1
		for end < len(ranks) && ranks[end] == ranks[end-1]+1 {
			end++
		}
		if first, last := ranks[i], ranks[end-1]; first == last {
			runs = append(runs, fmt.Sprint(first))
		} else {
			runs = append(runs, fmt.Sprintf("%d–%d", first, last))
		}
		i = end
	}
	if len(runs) > maxRuns {
		runs = append(runs[:maxRuns], "others")
	}
	text := strings.Join(runs, ", ")
	if i := strings.LastIndex(text, ", "); i >= 0 {
		text = text[:i] + " and " + text[i+2:]
	}
	if len(ranks) == 1 {
		return "rank " + text
	}
	return "ranks " + text
}

// maxRuns bounds the length of a rankList.
const maxRuns = 20

// waitForAll returns when the connections of all ranks have ended, or writeTimeout after
// this rank has given up.
func (c *control) waitForAll(gaveUp <-chan struct{}) {
	var limit <-chan time.Time
	for rank := range c.members {
		c.mu.Lock()
		drained := c.members[rank].drained
		c.mu.Unlock()
		for waiting := drained != nil; waiting; {
			select {
			case <-drained:
				waiting = false
			case <-gaveUp:
				gaveUp, limit = nil, time.After(writeTimeout)
			case <-limit:
				return
			}
		}
	}
}
