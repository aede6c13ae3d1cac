package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/ranklist"
)

const (
	// AssembleTimeout bounds the time from the beginning of a control server of ranks until
	// all of them have joined: pods and batch steps do not begin together.
	AssembleTimeout = 5 * time.Minute

	// assembleNotice is when rank 0 says for whom it waits.
	assembleNotice = 30 * time.Second
)

// An assembly is the time until all ranks have joined. Where a rank serves the control
// connections, its ranks are answered together, since the answer says which of them
// share a host; those of a group, since all of them have the new endpoint, or none.
type assembly struct {
	timers   []*time.Timer // none where a launcher knows all that at once
	complete bool          // all have joined
	failed   *lostMessage  // of a group: because of whom it is never complete
}

func newAssembly(c *Server) assembly {
	return assembly{timers: []*time.Timer{
		time.AfterFunc(assembleNotice, c.noticeAssembly),
		time.AfterFunc(AssembleTimeout, c.refuseAssembly),
	}}
}

func (a assembly) stop() {
	for _, t := range a.timers {
		t.Stop()
	}
}

// assemble answers all ranks if the last of them has joined.
func (c *Server) assemble() {
	if slices.ContainsFunc(c.members, func(m member) bool { return m.conn == nil }) {
		return
	}
	c.assembly.stop()
	c.assembly.complete = true
	joined := c.cfg.Layout
	if c.cfg.OfRanks {
		joined = layout(c.members)
		if why := joined.SelectionsDiffer; why != "" {
			go c.cfg.Unselected(why) // it may block
		}
	} else {
		c.server.Listener.Close() // nobody else joins a group
	}
	for rank := range c.members {
		c.send(rank, message{Joined: &joined})
	}
}

// missing says which ranks have not joined; "" if all have, as when the last of them joins
// while a timer fires.
func (c *Server) missing(within time.Duration) string {
	var missing []int
	for rank := range c.members {
		if c.members[rank].conn == nil {
			missing = append(missing, rank)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("of %d ranks, these have not joined within %v: %s", c.cfg.Size, within, ranklist.String(missing))
}

// noticeAssembly says for which ranks the others wait.
func (c *Server) noticeAssembly() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := c.missing(assembleNotice); text != "" {
		go c.cfg.Waiting(text) // it may block
	}
}

// refuseAssembly refuses the ranks that have joined, since others have not.
func (c *Server) refuseAssembly() {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := c.missing(AssembleTimeout)
	if why == "" {
		return
	}
	for rank := range c.members {
		c.send(rank, message{Refused: why})
	}
}

// layout numbers the hosts in the order of their lowest ranks, and returns the number of
// processors of the host that has the fewest.
func layout(members []member) JoinedMessage {
	numbers := make(map[string]int)
	j := JoinedMessage{Hosts: make([]int, len(members)), Processors: members[0].Processors}
	for rank, m := range members {
		number, known := numbers[m.Host]
		if !known {
			number = len(numbers)
			numbers[m.Host] = number
		}
		j.Hosts[rank] = number
		j.Processors = min(j.Processors, m.Processors)
	}
	j.SelectionsDiffer = differ(members)
	return j
}

// differ says which ranks have found other selections than the rest; "" if all have the same.
func differ(members []member) string {
	var digests []string // in the order of their lowest ranks
	ranks, hosts := make(map[string][]int), make(map[string][]string)
	for rank, m := range members {
		if ranks[m.Selections] == nil {
			digests = append(digests, m.Selections)
		}
		ranks[m.Selections] = append(ranks[m.Selections], rank)
		if !slices.Contains(hosts[m.Selections], m.Host) {
			hosts[m.Selections] = append(hosts[m.Selections], m.Host)
		}
	}
	if len(digests) < 2 {
		return ""
	}
	text := ""
	for i, d := range digests[:min(len(digests), maxDigests)] {
		if i > 0 {
			text += ", "
		}
		on := strings.Join(hosts[d][:min(len(hosts[d]), maxDigests)], ", ")
		if more := len(hosts[d]) - maxDigests; more > 0 {
			on += fmt.Sprintf(" and %d more", more)
		}
		text += fmt.Sprintf("%s (%s) %s", ranklist.Name(ranks[d]), on, cmp.Or(d, "none"))
	}
	if more := len(digests) - maxDigests; more > 0 {
		text += fmt.Sprintf(", and %d other selections", more)
	}
	return "the machine's profile has other selections for some ranks than for the rest: " + text
}

// The text of a difference names as many digests, and as many hosts of each, at most. A digest
// has maxDigest bytes at most.
const (
	maxDigests = 3
	maxDigest  = 32
)

// EndTimeout is how long a rank has to notice that the job has failed, and to end in good
// order. chorale run gives as much to the ranks of its own jobs.
const EndTimeout = 5 * time.Second

// WaitForAll returns when the connections of all ranks have ended, or EndTimeout after
// this rank has given up.
func (c *Server) WaitForAll(gaveUp <-chan struct{}) {
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
				gaveUp, limit = nil, time.After(EndTimeout)
			case <-limit:
				return
			}
		}
	}
}
