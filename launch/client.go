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

// A client is a rank's end of its control connection. All its methods but
// receive, which one goroutine calls, may be called concurrently.
type client struct {
	conn net.Conn
	in   *bufio.Scanner

	mu       sync.Mutex
	closed   bool
	reported bool                   // the launcher knows on which peer this rank failed
	pending  map[query][]chan reply // queries that the launcher has not answered
}

// A query asks for the address of a rank, or for the memory that it has mapped.
type query struct {
	rank   int
	memory bool
}

// A reply is the text that answers a query, or the reason why there is none.
type reply struct {
	text string
	err  error
}

// dial connects to the launcher and joins the job. Join says how other ranks
// reach this one; dial fills in its rank and token.
func dial(ctx context.Context, env JobEnv, join joinMessage) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", env.Control)
	if err != nil {
		return nil, fmt.Errorf("rank %d does not reach its launcher: %w", env.Rank, err)
	}
	c := &client{conn: conn, in: messageScanner(conn), pending: make(map[query][]chan reply)}
	if err := c.join(ctx, env, join); err != nil {
		conn.Close()
		return nil, fmt.Errorf("rank %d does not join its job: %w", env.Rank, err)
	}
	return c, nil
}

func (c *client) join(ctx context.Context, env JobEnv, join joinMessage) error {
	stop := context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	join.Token, join.Rank = hex.EncodeToString(env.Token[:]), env.Rank
	if err := c.send(message{Join: &join}); err != nil {
		return err
	}
	var answer message
	switch {
	case !c.in.Scan():
		return errors.Join(context.Cause(ctx), c.in.Err(), errors.New("the launcher is gone"))
	case json.Unmarshal(c.in.Bytes(), &answer) != nil:
		return fmt.Errorf("the launcher answers %q: want joined or refused", c.in.Text())
	case answer.Refused != "":
		return errors.New(answer.Refused)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return nil
}

// receive handles the launcher's messages until the connection ends. It calls lost
// for every rank that the launcher announces as lost, and reports whether this
// side closed the connection.
func (c *client) receive(lost func(rank int, reason string)) (closed bool) {
	for c.in.Scan() {
		var m message
		if json.Unmarshal(c.in.Bytes(), &m) != nil {
			break
		}
		switch {
		case m.AddressReply != nil:
			c.resolve(query{rank: m.AddressReply.Rank}, reply{text: m.AddressReply.Address})
		case m.MemoryReply != nil:
			c.resolve(query{m.MemoryReply.Rank, true}, reply{text: m.MemoryReply.Memory})
		case m.Left != nil:
			c.resolve(query{rank: *m.Left}, reply{err: &transport.PeerError{Peer: *m.Left, Err: transport.ErrLeft}})
		case m.Lost != nil:
			rank, reason := m.Lost.Rank, m.Lost.Reason
			failed := reply{err: &transport.PeerError{Peer: rank, Err: transport.ErrLost, Reason: reason}}
			c.resolve(query{rank: rank}, failed)
			c.resolve(query{rank, true}, failed)
			lost(rank, reason)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// resolve passes the reply to every call that waits for it.
func (c *client) resolve(q query, r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waiter := range c.pending[q] {
		waiter <- r
	}
	delete(c.pending, q)
}

// lookup waits until a rank has joined the job and returns its address. It fails
// with [transport.ErrLeft] or [transport.ErrLost] if the rank has ended.
func (c *client) lookup(ctx context.Context, rank int) (address string, err error) {
	return c.ask(ctx, query{rank: rank}, message{AddressQuery: &rank})
}

// memoryOf waits until a rank has joined the job and returns the name of the
// memory that it has mapped, or "" if it has mapped none. It also answers for a
// rank that has left, because the messages of that rank are still in the memory.
func (c *client) memoryOf(ctx context.Context, rank int) (memory string, err error) {
	return c.ask(ctx, query{rank, true}, message{MemoryQuery: &rank})
}

func (c *client) ask(ctx context.Context, q query, m message) (text string, err error) {
	waiter := make(chan reply, 1)
	c.mu.Lock()
	c.pending[q] = append(c.pending[q], waiter)
	err = c.sendLocked(m)
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	select {
	case r := <-waiter:
		return r.text, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// reportFailure tells the launcher because of which peer an operation failed, so
// that the launcher does not take this rank for the root cause. Only the first
// report counts.
func (c *client) reportFailure(peer int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reported {
		c.reported = true
		c.sendLocked(message{FailedPeer: &peer}) // fails only if the launcher is gone
	}
}

func (c *client) send(m message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLocked(m)
}

func (c *client) sendLocked(m message) error {
	if c.closed {
		return transport.ErrClosed
	}
	return writeMessage(c.conn, m)
}

// leave tells the launcher that this rank leaves the job, and waits until the
// launcher confirms it: from then on, a peer that finds this rank's connections
// closed learns from the launcher that it has left.
func (c *client) leave(rank int) {
	left := make(chan reply, 1)
	c.mu.Lock()
	c.pending[query{rank: rank}] = append(c.pending[query{rank: rank}], left)
	err := c.sendLocked(message{Leave: true})
	c.mu.Unlock()
	if err == nil {
		select {
		case <-left:
		case <-time.After(writeTimeout):
		}
	}
}

// close ends the connection, and with it receive.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.conn.Close()
}
