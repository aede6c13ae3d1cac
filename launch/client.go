package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
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

// joinTimeout bounds how long a rank waits for the launcher to answer it.
const joinTimeout = 30 * time.Second

// dial connects to the launcher and joins the job. Join says how other ranks reach
// this one. A connection that the launcher drops before it answers is made anew.
func dial(ctx context.Context, env JobEnv, join joinMessage) (*client, error) {
	return dialWithin(ctx, joinTimeout, env, join)
}

func dialWithin(ctx context.Context, limit time.Duration, env JobEnv, join joinMessage) (*client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the launcher at %s has not answered for %v", env.Control, limit))
	defer cancel()
	var retry proof.Retry
	for {
		c, err := connect(ctx, env, join)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, proof.ErrDropped) || !retry.Wait(ctx) {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, fmt.Errorf("rank %d does not join its job: %w", env.Rank, err)
		}
	}
}

// connect connects to the launcher once.
func connect(ctx context.Context, env JobEnv, join joinMessage) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", env.Control)
	if err != nil {
		return nil, fmt.Errorf("its launcher is not there: %w", err)
	}
	c := &client{conn: conn, in: messageScanner(conn), pending: make(map[query][]chan reply)}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err = c.join(env, join)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// join proves the job's secret to the launcher, which has to prove it first, and joins
// the job.
func (c *client) join(env JobEnv, join joinMessage) error {
	mine, err := proof.NewProver(env.Secret, uint32(env.Rank), env.Size).Dial(c.conn, proof.Launcher)
	if err != nil {
		return err
	}
	if _, err := c.conn.Write(append(mine[:], encode(message{Join: &join})...)); err != nil {
		return fmt.Errorf("%w: %w", proof.ErrDropped, err)
	}
	var answer message
	switch {
	case !c.in.Scan():
		return errors.Join(proof.ErrDropped, c.in.Err())
	case json.Unmarshal(c.in.Bytes(), &answer) != nil || !answer.Joined && answer.Refused == "":
		return fmt.Errorf("the launcher answers %q: want joined or refused", c.in.Text())
	case answer.Refused != "":
		return errors.New(answer.Refused)
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
			r := reply{text: m.AddressReply.Address}
			switch a := m.AddressReply; {
			case a.Aborted != "":
				r.err = &transport.PeerError{Peer: a.Rank, Err: transport.ErrAborted, Reason: a.Aborted}
			case a.Left:
				r.err = &transport.PeerError{Peer: a.Rank, Err: transport.ErrLeft}
			}
			c.resolve(query{rank: m.AddressReply.Rank}, r)
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
// with [transport.ErrLeft], [transport.ErrAborted] or [transport.ErrLost] if the rank has
// ended. A rank that has left may still have an address.
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
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending[q] = slices.DeleteFunc(c.pending[q], func(w chan reply) bool { return w == waiter })
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
