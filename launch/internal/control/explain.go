package control

import (
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/stall"
)

// answerTimeout bounds how long the ranks may take to say what they do.
const answerTimeout = 2 * time.Second

// A stateQuery asks all ranks what they do. The server's lock guards it.
type stateQuery struct {
	explaining sync.Mutex // one at a time; taken before the server's lock
	number     uint32
	states     []*stall.Rank // of the query in progress, by rank
	missing    int           // how many have not answered
	complete   chan struct{} // closed when all have; nil if there is no query in progress
}

// take takes the answer of a rank, if it is one to the query in progress.
func (q *stateQuery) take(rank int, m *stateMessage) {
	if q.complete == nil || m.Query != q.number || q.states[rank] != nil {
		return
	}
	m.Rank.Bound()
	q.states[rank] = &m.Rank
	if q.missing--; q.missing == 0 {
		q.end()
	}
}

// end ends the query in progress.
func (q *stateQuery) end() {
	if q.complete != nil {
		close(q.complete)
		q.complete = nil
	}
}

// Explain asks all ranks what they do, and returns what they have said within
// answerTimeout. Patience is for how long something has waited at least. It must not be
// called with the lock, and returns early when the server is closed.
func (c *Server) Explain(patience time.Duration) *stall.Report {
	c.query.explaining.Lock()
	defer c.query.explaining.Unlock()
	report := c.states(patience)
	if report.Deadlock() != nil {
		// A busy machine has the ranks look one after another, and ranks that take turns may
		// then have waited in turn. A wait from before the last answer to after the next
		// question is at the same time as the others.
		report.Confirm(c.states(patience))
	}
	for rank, absent := range report.Absent {
		if absent == stall.Present {
			c.stalls.Cover(rank, report.Ranks[rank].Waits)
		}
	}
	return report
}

// states asks all ranks once.
func (c *Server) states(patience time.Duration) *stall.Report {
	complete := c.ask()
	select {
	case <-complete:
	case <-time.After(answerTimeout):
	}
	report, silent := c.collect(patience)
	for _, rank := range silent {
		report.Absent[rank] = stall.NoAnswer
		if c.cfg.State != nil {
			report.Absent[rank] = c.cfg.State(rank)
		}
	}
	return report
}

// ask sends the query to all ranks that have joined and not left.
func (c *Server) ask() (complete <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := &c.query
	q.number++
	q.states, q.missing, q.complete = make([]*stall.Rank, len(c.members)), 0, make(chan struct{})
	complete = q.complete
	for rank := range c.members {
		if m := &c.members[rank]; m.conn != nil && !m.over && m.ended == "" {
			q.missing++
			c.send(rank, message{StateQuery: q.number})
		}
	}
	if q.missing == 0 || c.closed {
		q.end()
	}
	return complete
}

// collect returns what the ranks have said, and those that should have said something.
func (c *Server) collect(patience time.Duration) (report *stall.Report, silent []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := &c.query
	q.end()
	report = stall.New(len(c.members))
	report.For = patience
	for rank := range c.members {
		m := &c.members[rank]
		report.Details[rank] = m.ended
		switch {
		case q.states[rank] != nil:
			report.Ranks[rank] = *q.states[rank]
		case m.left:
			report.Absent[rank] = stall.HasLeft
		case m.ended != "":
			report.Absent[rank] = stall.Dead
		case m.conn == nil:
			report.Absent[rank] = stall.NotJoined
		default:
			silent = append(silent, rank)
		}
	}
	return report, silent
}
