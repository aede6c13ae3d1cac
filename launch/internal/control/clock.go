package control

import (
	"errors"
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/clock"
)

// A clockReply is the time on the launcher's host.
type clockReply struct {
	Query uint32 `json:"query"`
	Host  string `json:"host"`
	Time  int64  `json:"time"` // in nanoseconds
}

// A clockQuery is the last question for the time on the launcher's host.
type clockQuery struct {
	asking sync.Mutex // held from a question to its answer

	mu     sync.Mutex
	number uint32
	answer chan clockAnswer // of the question of that number
}

type clockAnswer struct {
	clockReply
	arrived int64 // by the clock of this host
}

// take takes a reply. One that nobody waits for any more is dropped.
func (q *clockQuery) take(r *clockReply) {
	arrived := clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.Query == q.number && q.answer != nil {
		q.answer <- clockAnswer{*r, arrived}
		q.answer = nil
	}
}

// CompareClocks returns the offset from the clock of this rank's host to that of the
// launcher's. It is exact if host is the launcher's own. It takes some round trips on the
// connection, and fails if one takes longer than WriteTimeout.
func (c *Client) CompareClocks(host string) (clock.Offset, error) {
	c.clock.asking.Lock()
	defer c.clock.asking.Unlock()
	same := false
	o, err := clock.Compare(func() (before, there, after int64, err error) {
		a, before, err := c.askClock()
		same = a.Host == host
		return before, a.Time, a.arrived, err
	})
	if err == nil && same {
		o = clock.Offset{At: o.At}
	}
	return o, err
}

// errNoTime is why clocks are not compared.
var errNoTime = errors.New("the launcher does not say what time it is")

func (c *Client) askClock() (a clockAnswer, before int64, err error) {
	answer := make(chan clockAnswer, 1)
	c.clock.mu.Lock()
	c.clock.number++
	number := c.clock.number
	c.clock.answer = answer
	c.clock.mu.Unlock()
	c.mu.Lock()
	before = clock.Now()
	err = c.sendLocked(message{ClockQuery: number})
	c.mu.Unlock()
	if err != nil {
		return a, before, err
	}
	select {
	case a = <-answer:
		return a, before, nil
	case <-time.After(WriteTimeout):
		return a, before, errNoTime
	}
}
