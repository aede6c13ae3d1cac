package launch

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A client is a rank's end of its control connection.
type client struct {
	conn net.Conn
	in   *bufio.Scanner

	mu      sync.Mutex
	closed  bool
	blaming bool                       // the launcher knows whom this rank blames
	asking  map[question][]chan answer // those who wait to hear of a rank
}

// A question is where a rank is, or which memory it has mapped.
type question struct {
	rank   int
	memory bool
}

// An answer is that, or why there is none.
type answer struct {
	text string
	err  error
}

// dial connects to the launcher and joins the job. Me says how other ranks reach
// this one.
func dial(ctx context.Context, place Place, me joinMessage) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", place.Control)
	if err != nil {
		return nil, fmt.Errorf("rank %d does not reach its launcher: %w", place.Rank, err)
	}
	c := &client{conn: conn, in: messages(conn), asking: make(map[question][]chan answer)}
	if err := c.join(ctx, place, me); err != nil {
		conn.Close()
		return nil, fmt.Errorf("rank %d does not join its job: %w", place.Rank, err)
	}
	return c, nil
}

func (c *client) join(ctx context.Context, place Place, me joinMessage) error {
	stop := context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	me.Token, me.Rank = hex.EncodeToString(place.Token[:]), place.Rank
	if err := c.say(message{Join: &me}); err != nil {
		return err
	}
	var answer message
	switch {
	case !c.in.Scan():
		return errors.Join(context.Cause(ctx), c.in.Err(), errors.New("the launcher is gone"))
	case json.Unmarshal(c.in.Bytes(), &answer) != nil:
		return fmt.Errorf("the launcher says %q", c.in.Text())
	case answer.Refused != "":
		return errors.New(answer.Refused)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return nil
}

// listen hears the launcher until the connection ends. It calls lost for every
// rank that is, and returns whether it was this side that ended the connection.
func (c *client) listen(lost func(rank int, reason string)) (closed bool) {
	for c.in.Scan() {
		var m message
		if json.Unmarshal(c.in.Bytes(), &m) != nil {
			break
		}
		switch {
		case m.At != nil:
			c.answer(question{rank: m.At.Rank}, answer{text: m.At.Address})
		case m.Maps != nil:
			c.answer(question{m.Maps.Rank, true}, answer{text: m.Maps.Memory})
		case m.Left != nil:
			c.answer(question{rank: *m.Left}, answer{err: &transport.PeerError{Peer: *m.Left, Err: transport.ErrLeft}})
		case m.Lost != nil:
			rank, reason := m.Lost.Rank, m.Lost.Reason
			gone := answer{err: &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: reason}}
			c.answer(question{rank: rank}, gone)
			c.answer(question{rank, true}, gone)
			lost(rank, reason)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// answer tells those who have asked.
func (c *client) answer(q question, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, asker := range c.asking[q] {
		asker <- a
	}
	delete(c.asking, q)
}

// lookup returns the address of a rank, as soon as that has joined the job, or
// why it has none.
func (c *client) lookup(ctx context.Context, rank int) (address string, err error) {
	return c.ask(ctx, question{rank: rank}, message{Where: &rank})
}

// memoryOf returns which memory a rank has mapped, as soon as that has joined the
// job; "" if none. A rank that has left is remembered: what it has sent is still
// there.
func (c *client) memoryOf(ctx context.Context, rank int) (memory string, err error) {
	return c.ask(ctx, question{rank, true}, message{Shares: &rank})
}

func (c *client) ask(ctx context.Context, q question, m message) (text string, err error) {
	asker := make(chan answer, 1)
	c.mu.Lock()
	c.asking[q] = append(c.asking[q], asker)
	err = c.sayLocked(m)
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	select {
	case a := <-asker:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// blame tells the launcher which rank made an exchange fail, so that it does
// not take this rank for the culprit.
func (c *client) blame(rank int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.blaming {
		c.blaming = true
		c.sayLocked(message{Blames: &rank}) // if it fails, the launcher is gone
	}
}

func (c *client) say(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sayLocked(m)
}

func (c *client) sayLocked(m message) error {
	if c.closed {
		return transport.ErrClosed
	}
	return send(c.conn, m)
}

// leave tells the launcher that this rank leaves the job, and waits until the
// launcher knows: a rank that does not get through to this one any more learns
// from the launcher why.
func (c *client) leave(rank int) {
	left := make(chan answer, 1)
	c.mu.Lock()
	c.asking[question{rank: rank}] = append(c.asking[question{rank: rank}], left)
	err := c.sayLocked(message{Leaves: true})
	c.mu.Unlock()
	if err == nil {
		select {
		case <-left:
		case <-time.After(writeTime):
		}
	}
}

// close ends the connection, and with it listen.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.conn.Close()
}
