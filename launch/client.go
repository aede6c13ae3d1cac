package launch

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

	"github.com/chorale-go/chorale/internal/network"
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

// A dialConfig is what a rank has to know to join its job.
type dialConfig struct {
	rank, size int
	secret     proof.Secret
	addresses  []string         // of the control server, the likeliest first
	encrypted  bool             // the connection goes on as TLS
	ofRanks    bool             // rank 0 serves, and answers when all ranks have joined
	early      func(error) bool // whether an attempt failed because rank 0 does not serve yet; nil: none does
}

// dial connects to the control server and joins the job. Self is what this rank says of
// itself, given its address on the connection. A connection that the server drops before
// it answers is made anew; where rank 0 serves, a rank also waits for it to begin.
func dial(ctx context.Context, cfg dialConfig, self func(local netip.Addr) (joinMessage, error)) (*client, joinedMessage, error) {
	limit := joinTimeout
	if cfg.ofRanks {
		limit += assembleTimeout
	}
	return dialWithin(ctx, limit, cfg, self)
}

func dialWithin(ctx context.Context, limit time.Duration, cfg dialConfig, self func(local netip.Addr) (joinMessage, error)) (*client, joinedMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	retry := proof.Retry{Limit: limit}
	for {
		c, joined, err := connect(ctx, cfg, self)
		if err == nil {
			return c, joined, nil
		}
		if again := errors.Is(err, proof.ErrDropped) || cfg.early != nil && cfg.early(err); !again || !retry.Wait(ctx) {
			if ctx.Err() != nil && again {
				err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return nil, joined, fmt.Errorf("rank %d does not join its job: %w", cfg.rank, err)
		}
	}
}

// connect connects to the control server once.
func connect(ctx context.Context, cfg dialConfig, self func(local netip.Addr) (joinMessage, error)) (*client, joinedMessage, error) {
	var none joinedMessage
	prover := proof.NewProver(cfg.secret, uint32(cfg.rank), cfg.size)
	prover.TLS = cfg.encrypted
	conn, err := network.Dial(ctx, cfg.addresses, func(ctx context.Context, conn net.Conn) (net.Conn, error) {
		return prover.Connect(ctx, conn, proof.Launcher)
	})
	if err != nil {
		return nil, none, fmt.Errorf("its launcher is not reached: %w", err)
	}
	c := &client{conn: conn, in: messageScanner(conn, maxMessage+hostLen*cfg.size), pending: make(map[query][]chan reply)}
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
func (c *client) join(self func(local netip.Addr) (joinMessage, error)) (joinedMessage, error) {
	var answer message
	mine, err := self(network.LocalAddress(c.conn))
	if err != nil {
		return joinedMessage{}, err
	}
	if err := json.NewEncoder(c.conn).Encode(message{Join: &mine}); err != nil {
		return joinedMessage{}, fmt.Errorf("%w: %w", proof.ErrDropped, err)
	}
	switch {
	case !c.in.Scan():
		return joinedMessage{}, errors.Join(proof.ErrDropped, c.in.Err())
	case json.Unmarshal(c.in.Bytes(), &answer) != nil:
	case answer.Joined != nil:
		return *answer.Joined, nil
	case answer.Refused != "":
		return joinedMessage{}, errors.New(answer.Refused)
	case answer.Lost != nil:
		return joinedMessage{}, &transport.PeerError{Peer: answer.Lost.Rank, Err: transport.ErrLost, Reason: answer.Lost.Reason}
	}
	return joinedMessage{}, fmt.Errorf("the launcher answers %.200q: want joined or refused", c.in.Text())
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

// reportStalls tells the launcher what has been waiting here for other ranks for long.
func (c *client) reportStalls(stalls []transport.Stall) {
	out := writeStalls(stalls)
	c.report(message{Stalls: &out})
}

// reportCMADenied tells the launcher that the system denied this rank cross-memory attach.
func (c *client) reportCMADenied() { c.report(message{CMADenied: true}) }

// reportAbort tells the launcher why this rank gave up.
func (c *client) reportAbort(reason string) {
	c.report(message{Abort: reason[:min(len(reason), maxReason)]})
}

// report sends a message that has no answer. If the launcher is gone, this process ends
// anyway.
func (c *client) report(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.sendLocked(m)
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
