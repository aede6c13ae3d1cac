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
	blaming bool                  // the launcher knows whom this rank blames
	asking  map[int][]chan answer // those who wait to hear where a rank is
}

// An answer is where a rank is, or why it is nowhere.
type answer struct {
	address string
	err     error
}

// dial connects to the launcher and joins the job, with the address at which
// other ranks reach this one.
func dial(ctx context.Context, place Place, address string) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", place.Control)
	if err != nil {
		return nil, fmt.Errorf("rank %d does not reach its launcher: %w", place.Rank, err)
	}
	c := &client{conn: conn, in: messages(conn), asking: make(map[int][]chan answer)}
	if err := c.join(ctx, place, address); err != nil {
		conn.Close()
		return nil, fmt.Errorf("rank %d does not join its job: %w", place.Rank, err)
	}
	return c, nil
}

func (c *client) join(ctx context.Context, place Place, address string) error {
	stop := context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	token := hex.EncodeToString(place.Token[:])
	if err := c.say(message{Join: &joinMessage{token, place.Rank, address}}); err != nil {
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
			c.answer(m.At.Rank, answer{address: m.At.Address})
		case m.Left != nil:
			c.answer(*m.Left, answer{err: &transport.PeerError{Peer: *m.Left, Err: transport.ErrLeft}})
		case m.Lost != nil:
			rank, reason := m.Lost.Rank, m.Lost.Reason
			c.answer(rank, answer{err: &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: reason}})
			lost(rank, reason)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// answer tells those who have asked for a rank.
func (c *client) answer(rank int, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, asker := range c.asking[rank] {
		asker <- a
	}
	delete(c.asking, rank)
}

// lookup returns the address of a rank, as soon as that has joined the job, or
// why it has none.
func (c *client) lookup(ctx context.Context, rank int) (address string, err error) {
	asker := make(chan answer, 1)
	c.mu.Lock()
	c.asking[rank] = append(c.asking[rank], asker)
	err = c.sayLocked(message{Where: &rank})
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	select {
	case a := <-asker:
		return a.address, a.err
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
	c.asking[rank] = append(c.asking[rank], left)
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
