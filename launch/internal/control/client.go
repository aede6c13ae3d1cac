package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/transport"
)

// A Client is a rank's end of its control connection. All its methods but
// Receive, which one goroutine calls, may be called concurrently.
type Client struct {
	Look func() stall.Rank // says what this rank does; set before Receive; nil: no answer

	conn net.Conn
	in   *bufio.Scanner

	mu       sync.Mutex
	closed   bool
	looking  bool                       // Look is under way
	reported bool                       // the launcher knows on which peer this rank failed
	pending  map[query][]chan reply     // queries that the launcher has not answered
	groups   map[uint64]chan groupReply // what Regroup waits for, by its id
	clock    clockQuery
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

// JoinTimeout bounds how long a rank waits for the launcher to answer it.
const JoinTimeout = 30 * time.Second

// A DialConfig is what a rank has to know to join its job.
type DialConfig struct {
	Rank, Size int
	Secret     proof.Secret
	Addresses  []string         // of the control server, the likeliest first
	Encrypted  bool             // the connection goes on as TLS
	OfRanks    bool             // rank 0 serves, and answers when all ranks have joined
	Early      func(error) bool // whether an attempt failed because rank 0 does not serve yet; nil: none does
}

// Dial connects to the control server and joins the job. Self is what this rank says of
// itself, given its address on the connection. A connection that the server drops before
// it answers is made anew; where rank 0 serves, a rank also waits for it to begin, though
// not for one that has ended.
func Dial(ctx context.Context, cfg DialConfig, self func(local netip.Addr) (JoinMessage, error)) (*Client, JoinedMessage, error) {
	limit := JoinTimeout
	if cfg.OfRanks {
		limit += AssembleTimeout
	}
	return dialWithin(ctx, limit, cfg, self)
}

func dialWithin(ctx context.Context, limit time.Duration, cfg DialConfig, self func(local netip.Addr) (JoinMessage, error)) (*Client, JoinedMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	type member struct {
		client *Client
		joined JoinedMessage
	}
	m, err := within(ctx, limit, cfg, func() (m member, err error) {
		m.client, m.joined, err = connect(ctx, cfg, self)
		return m, err
	})
	return m.client, m.joined, err
}

// within calls attempt until it succeeds or fails for good, or the limit is over.
func within[T any](ctx context.Context, limit time.Duration, cfg DialConfig, attempt func() (T, error)) (T, error) {
	retry := proof.Retry{Limit: limit}
	begun := false // the control server has proven itself
	for {
		t, err := attempt()
		if err == nil {
			return t, nil
		}
		early := cfg.Early != nil && cfg.Early(err)
		if early && begun {
			early, err = false, fmt.Errorf("rank 0 has ended: %w", err)
		}
		begun = begun || !errors.As(err, new(*network.DialError))
		if again := errors.Is(err, proof.ErrDropped) || early; !again || !retry.Wait(ctx) {
			if ctx.Err() != nil && again {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return t, fmt.Errorf("rank %d does not join its job: %w", cfg.Rank, err)
		}
	}
}

// open opens a connection to the control server once, on which both ends have proven
// themselves.
func (cfg DialConfig) open(ctx context.Context) (net.Conn, error) {
	prover := proof.NewProver(cfg.Secret, uint32(cfg.Rank), cfg.Size)
	prover.TLS = cfg.Encrypted
	conn, err := network.Dial(ctx, cfg.Addresses, func(ctx context.Context, conn net.Conn) (net.Conn, error) {
		return prover.Connect(ctx, conn, proof.Launcher)
	})
	if err != nil {
		return nil, fmt.Errorf("its launcher is not reached: %w", err)
	}
	return conn, nil
}

// connect joins at the control server, in one attempt.
func connect(ctx context.Context, cfg DialConfig, self func(local netip.Addr) (JoinMessage, error)) (*Client, JoinedMessage, error) {
	var none JoinedMessage
	conn, err := cfg.open(ctx)
	if err != nil {
		return nil, none, err
	}
	c := &Client{conn: conn, in: messageScanner(conn, MaxMessage+maxGroup+MaxSelections), pending: make(map[query][]chan reply), groups: make(map[uint64]chan groupReply)}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	joined, err := c.join(self)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, none, err
	}
	return c, joined, nil
}

// join joins the job.
func (c *Client) join(self func(local netip.Addr) (JoinMessage, error)) (JoinedMessage, error) {
	var answer message
	mine, err := self(network.LocalAddress(c.conn))
	if err != nil {
		return JoinedMessage{}, err
	}
	if err := json.NewEncoder(c.conn).Encode(message{Join: &mine}); err != nil {
		return JoinedMessage{}, fmt.Errorf("%w: %w", proof.ErrDropped, err)
	}
	switch {
	case !c.in.Scan():
		return JoinedMessage{}, errors.Join(proof.ErrDropped, c.in.Err())
	case json.Unmarshal(c.in.Bytes(), &answer) != nil:
	case answer.Joined != nil:
		return *answer.Joined, nil
	case answer.Refused != "":
		return JoinedMessage{}, errors.New(answer.Refused)
	case answer.Lost != nil:
		return JoinedMessage{}, &transport.PeerError{Peer: answer.Lost.Rank, Err: transport.ErrLost, Reason: answer.Lost.Reason}
	}
	return JoinedMessage{}, fmt.Errorf("the launcher answers %.200q: want joined or refused", c.in.Text())
}

// Receive handles the launcher's messages until the connection ends. It calls lost
// for every rank that the launcher announces as lost, gaveUp for every rank that it says
// has given up, and reports whether this side closed the connection.
func (c *Client) Receive(lost, gaveUp func(rank int, reason string)) (closed bool) {
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
		case m.GaveUp != nil:
			gaveUp(m.GaveUp.Rank, m.GaveUp.Reason)
		case m.Regrouped != nil:
			c.answerGroup(m.Regrouped.ID, groupReply{group: *m.Regrouped})
		case m.RegroupFailed != nil:
			c.answerGroup(m.RegroupFailed.ID, groupReply{err: m.RegroupFailed.Err()})
		case m.ClockReply != nil:
			c.clock.take(m.ClockReply)
		case m.StateQuery != 0 && c.Look != nil:
			c.answerState(m.StateQuery)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// answerState tells the launcher what this rank does, unless a look is under way.
func (c *Client) answerState(query uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looking {
		return
	}
	c.looking = true
	go func() {
		m := newStateMessage(query, c.Look())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.looking = false
		_ = c.sendLocked(m) // if the launcher is gone, this process ends anyway
	}()
}

// resolve passes the reply to every call that waits for it.
func (c *Client) resolve(q query, r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waiter := range c.pending[q] {
		waiter <- r
	}
	delete(c.pending, q)
}

// Lookup waits until a rank has joined the job and returns its address. It fails
// with [transport.ErrLeft], [transport.ErrAborted] or [transport.ErrLost] if the rank has
// ended. A rank that has left may still have an address.
func (c *Client) Lookup(ctx context.Context, rank int) (address string, err error) {
	return c.ask(ctx, query{rank: rank}, message{AddressQuery: &rank})
}

// MemoryOf waits until a rank has joined the job and returns the name of the
// memory that it has mapped, or "" if it has mapped none. It also answers for a
// rank that has left, because the messages of that rank are still in the memory.
func (c *Client) MemoryOf(ctx context.Context, rank int) (memory string, err error) {
	return c.ask(ctx, query{rank, true}, message{MemoryQuery: &rank})
}

func (c *Client) ask(ctx context.Context, q query, m message) (text string, err error) {
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

// ReportFailure tells the launcher because of which peer an operation failed, so
// that the launcher does not take this rank for the root cause. Only the first
// report counts.
func (c *Client) ReportFailure(peer int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reported {
		c.reported = true
		c.sendLocked(message{FailedPeer: &peer}) // fails only if the launcher is gone
	}
}

// ReportStalls tells the launcher what has been waiting here for other ranks for long.
func (c *Client) ReportStalls(stalls []transport.Stall) {
	out := writeStalls(stalls)
	c.report(message{Stalls: &out})
}

// ReportCMADenied tells the launcher that the system denied this rank cross-memory attach.
func (c *Client) ReportCMADenied() { c.report(message{CMADenied: true}) }

// ReportAbort tells the launcher why this rank gave up.
func (c *Client) ReportAbort(reason string) { c.report(message{Abort: cut(reason, maxReason)}) }

// ReportError sends the launcher the error of this rank's program, which the launcher
// prints. ReportError reports whether it was sent.
func (c *Client) ReportError(f failure.Failure) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLocked(newErrorMessage(f)) == nil
}

// report sends a message that has no answer. If the launcher is gone, this process ends
// anyway.
func (c *Client) report(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.sendLocked(m)
}

func (c *Client) sendLocked(m message) error {
	if c.closed {
		return transport.ErrClosed
	}
	return writeMessage(c.conn, m)
}

// Leave tells the launcher that this rank leaves the job, and waits until the
// launcher confirms it: from then on, a peer that finds this rank's connections
// closed learns from the launcher that it has left.
func (c *Client) Leave(rank int) {
	left := make(chan reply, 1)
	c.mu.Lock()
	c.pending[query{rank: rank}] = append(c.pending[query{rank: rank}], left)
	err := c.sendLocked(message{Leave: true})
	c.mu.Unlock()
	if err == nil {
		select {
		case <-left:
		case <-time.After(WriteTimeout):
		}
	}
}

// Close ends the connection, and with it Receive.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.conn.Close()
	for id, answer := range c.groups {
		answer <- groupReply{err: transport.ErrClosed}
		delete(c.groups, id)
	}
}
