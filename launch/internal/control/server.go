package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/stall"
)

// A Server is the launcher's end of the control connections. It knows the
// address of every rank that has joined, and how each rank ended. Its methods may
// be called concurrently.
type Server struct {
	cfg     Config
	server  proof.Server
	stalls  *stall.Tracker
	serving sync.WaitGroup
	stop    context.CancelFunc // drops the connections that have proven nothing

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]bool
	members []member
	query   stateQuery
	assembly
}

// A Config is what a Server has to know of its job.
type Config struct {
	Size      int
	Secret    proof.Secret
	Strangers int           // connections beside those of the ranks that have proven nothing
	Shared    bool          // all ranks must share memory
	Stall     time.Duration // how long a rank may wait for others before that is explained
	Listener  net.Listener  // nil for one of this host alone
	Addresses string        // at which ranks reach the listener; "" for its own
	Encrypted bool          // connections go on as TLS
	Host      string        // whose clock the server has, by the name that ranks give hosts
	Layout    JoinedMessage // what ranks are told that join
	OfRanks   bool          // a rank serves it, since no launcher of chorale's sees the ranks' ends
	Group     bool          // ranks join that have regrouped: all of them, or none
	Hooks
}

// Hooks are what a Server tells its job. Unless it says so, none may block.
type Hooks struct {
	Report  func(format string, args ...any) // a line of -v, in a goroutine of its own
	Failed  func(error)                      // it cannot accept connections
	Stalled func(*stall.Report)              // ranks have waited for as long as Config.Stall; in a goroutine of its own
	State   func(rank int) stall.Absence     // why a rank may not answer; it may block for a moment. Nil: nobody knows
	Dropped func(rank int, silent bool)      // the connection of a rank that has not left has ended, since no packet has come for long if it is silent; this one may block
	Metrics func(rank int, totals []byte)    // the sums of a rank's calls; nil: nobody wants them
	Waiting func(text string)                // where a rank serves: which have not joined yet; in a goroutine of its own

	// Where a rank serves: why no rank takes the selections that it has found; in a goroutine
	// of its own.
	Unselected func(why string)

	// Nil where ranks cannot regroup. The server's lock is not held: they may call it.
	Regroup      func(rank int, m RegroupMessage)
	Left         func(rank int)                 // the rank has left
	Newcomer     func(n *Newcomer)              // a newcomer waits
	NewcomerGone func(n *Newcomer, joined bool) // its connection has ended
}

// A member is what the launcher knows of one rank.
type member struct {
	conn           net.Conn         // nil until the rank joins
	drained        chan struct{}    // closed when conn has been read to its end
	JoinMessage                     // what it said of itself
	addressWaiters []int            // ranks with an address query for this rank, each once
	memoryWaiters  []int            // ranks with a memory query for this rank, each once
	failedPeer     int              // the peer because of which an operation of this rank failed, or -1
	cmaDenied      bool             // the system denied the rank cross-memory attach
	aborted        string           // why the rank gave up; "" if it did not
	failure        *failure.Failure // the error of its program; nil if it has sent none
	profile, trace record           // what it has recorded of its calls
	left           bool             // the rank closes its endpoint
	over           bool             // its connection has ended: it has closed its endpoint, if it has left
	ended          string           // how the process ended; "" while it runs
}

// WriteTimeout bounds how long a peer may take to read a message.
const WriteTimeout = 2 * time.Second

// NewServer begins to serve the ranks of a job. It owns the listener of its
// configuration.
func NewServer(cfg Config) (c *Server, err error) {
	if cfg.Listener == nil {
		if cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("listening for the ranks: %w", err)
		}
		cfg.Addresses = cfg.Listener.Addr().String()
	}
	prover := proof.NewProver(cfg.Secret, proof.Launcher, cfg.Size)
	prover.TLS = cfg.Encrypted
	ctx, stop := context.WithCancel(context.Background())
	c = &Server{
		cfg:     cfg,
		stalls:  stall.NewTracker(cfg.Size, cfg.Stall),
		stop:    stop,
		conns:   make(map[net.Conn]bool),
		members: make([]member, cfg.Size),
	}
	c.server = proof.Server{
		Prover:   prover,
		Listener: cfg.Listener,
		Handle:   c.serve,
		Max:      cfg.Strangers,
		Failed: func(err error) {
			cfg.Failed(fmt.Errorf("the launcher cannot accept the ranks' connections: %w", err))
		},
	}
	for i := range c.members {
		c.members[i].failedPeer = -1
	}
	if cfg.OfRanks {
		c.assembly = newAssembly(c)
	}
	c.serving.Go(func() { c.server.Serve(ctx) })
	return c, nil
}

// Address returns the address at which ranks reach the launcher, or several with commas
// between them.
func (c *Server) Address() string { return c.cfg.Addresses }

// serve handles the messages of a rank, which has proven the job's secret, until its
// connection ends.
func (c *Server) serve(rank int, conn net.Conn) {
	c.mu.Lock()
	c.conns[conn] = true
	if c.closed {
		conn.Close()
	}
	c.mu.Unlock()
	defer func() {
		conn.Close()
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}()
	_ = network.WatchHost(conn) // without it, a lost host is noticed later
	in := messageScanner(conn, MaxMessage+hostLen*c.cfg.Size)
	if !in.Scan() {
		return
	}
	var first message
	err := json.Unmarshal(in.Bytes(), &first)
	if err == nil && first.Newcomer && c.cfg.Newcomer != nil {
		c.serveNewcomer(rank, conn, in)
		return
	}
	if err != nil || first.Join == nil {
		writeMessage(conn, message{Refused: "its first message is not that it joins"})
		return
	}
	drained, err := c.join(conn, rank, *first.Join)
	if failed := new(assemblyError); errors.As(err, &failed) {
		writeMessage(conn, message{Lost: &failed.lost})
		return
	}
	if err != nil {
		writeMessage(conn, message{Refused: err.Error()})
		return
	}
	defer func() {
		c.mu.Lock()
		m := &c.members[rank]
		m.over = true
		dropped := !m.left && m.ended == "" && !c.closed && c.assembly.failed == nil
		if c.cfg.OfRanks {
			c.endLocked(rank, "its connection to rank 0 ended", m.left)
		}
		c.mu.Unlock()
		close(drained)
		if dropped {
			c.cfg.Dropped(rank, isSilence(in.Err()))
		}
	}()
	conn.SetReadDeadline(time.Time{})
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			return
		}
		switch {
		case m.Regroup != nil && c.cfg.Regroup != nil:
			c.cfg.Regroup(rank, *m.Regroup)
		default:
			c.handle(rank, m)
			if m.Leave && c.cfg.Left != nil {
				c.cfg.Left(rank)
			}
		}
	}
}

// isSilence reports whether a connection has ended because no packet came any more from the
// other end's host.
func isSilence(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// join records that a rank has joined, confirms it, and answers the queries that
// wait for the rank. The caller closes drained when it has read the rank's
// connection to its end.
func (c *Server) join(conn net.Conn, rank int, j JoinMessage) (drained chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &c.members[rank]
	switch {
	case c.assembly.failed != nil:
		return nil, &assemblyError{*c.assembly.failed}
	case m.conn != nil:
		return nil, fmt.Errorf("rank %d has joined already", rank)
	case len(j.Selections) > maxDigest:
		return nil, fmt.Errorf("the digest of its selections has %d bytes: want at most %d", len(j.Selections), maxDigest)
	case len(j.Address) > maxName || len(j.Memory) > maxName:
		return nil, fmt.Errorf("its address has %d bytes, and the name of its memory %d: want at most %d", len(j.Address), len(j.Memory), maxName)
	}
	for other := range c.members {
		if o := &c.members[other]; c.cfg.Shared && o.conn != nil && o.Memory != j.Memory {
			return nil, fmt.Errorf("it does not share memory with rank %d: want transport auto or tcp for ranks on several hosts", other)
		}
	}
	m.conn, m.JoinMessage, m.drained = conn, j, make(chan struct{})
	if c.cfg.OfRanks || c.cfg.Group {
		c.assemble()
	} else {
		writeMessage(conn, message{Joined: &c.cfg.Layout})
	}
	if j.FallbackReason != "" {
		go c.cfg.Report("rank %d shares no memory, and is reached over TCP: %s", rank, j.FallbackReason) // report may block
	}
	for _, waiter := range m.addressWaiters {
		c.send(waiter, message{AddressReply: &addressReply{Rank: rank, Address: j.Address}})
	}
	for _, waiter := range m.memoryWaiters {
		c.send(waiter, message{MemoryReply: &memoryReply{rank, j.Memory}})
	}
	m.addressWaiters, m.memoryWaiters = nil, nil
	return m.drained, nil
}

// handle handles a message of a rank that has joined.
func (c *Server) handle(rank int, m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.AddressQuery != nil && c.has(*m.AddressQuery):
		c.answerAddress(rank, *m.AddressQuery)
	case m.MemoryQuery != nil && c.has(*m.MemoryQuery):
		c.answerMemory(rank, *m.MemoryQuery)
	case m.FailedPeer != nil && c.has(*m.FailedPeer):
		c.members[rank].failedPeer = *m.FailedPeer
	case m.CMADenied && !c.members[rank].cmaDenied:
		c.members[rank].cmaDenied = true
		go c.cfg.Report("rank %d may not read the memory of other ranks: long messages were copied twice", rank)
	case m.Stalls != nil:
		if c.cfg.Stall > 0 && c.stalls.Record(rank, readStalls(*m.Stalls)) {
			c.serving.Go(func() {
				if r := c.Explain(c.cfg.Stall); r.Waits() { // otherwise what was waited for has come meanwhile
					c.cfg.Stalled(r)
				}
			})
		}
	case m.State != nil:
		c.query.take(rank, m.State)
	case m.Abort != "":
		c.members[rank].aborted = cut(m.Abort, maxReason)
	case m.Error != nil:
		f := cutFailure(*m.Error)
		c.members[rank].failure = &f
	case m.Profile != nil:
		c.members[rank].profile.add(m.Profile, maxProfile)
	case m.Trace != nil:
		c.members[rank].trace.add(m.Trace, MaxTrace)
	case m.Metrics != nil && c.cfg.Metrics != nil:
		c.cfg.Metrics(rank, m.Metrics)
	case m.ClockQuery != 0:
		c.send(rank, message{ClockReply: &clockReply{m.ClockQuery, c.cfg.Host, clock.Now()}})
	case m.Leave:
		c.members[rank].left = true
		c.send(rank, message{Left: &rank})
	}
}

// answerAddress answers a rank's query for the address of a peer, or queues the
// query until the peer joins or is lost.
func (c *Server) answerAddress(rank, peer int) {
	m := &c.members[peer]
	switch {
	case m.left && m.over: // what listens at its address is another process
		c.send(rank, message{AddressReply: &addressReply{Rank: peer, Left: true, Aborted: m.aborted}})
	case m.left:
		c.send(rank, message{AddressReply: &addressReply{peer, m.Address, true, m.aborted}})
	case m.ended != "":
		c.send(rank, message{Lost: &lostMessage{peer, m.ended}})
	case m.conn != nil:
		c.send(rank, message{AddressReply: &addressReply{Rank: peer, Address: m.Address}})
	default:
		m.addressWaiters = include(m.addressWaiters, rank)
	}
}

// answerMemory does the same for a query for the memory of a peer. The memory of
// a peer that has joined is known for good.
func (c *Server) answerMemory(rank, peer int) {
	m := &c.members[peer]
	switch {
	case m.conn != nil:
		c.send(rank, message{MemoryReply: &memoryReply{peer, m.Memory}})
	case m.ended != "":
		c.send(rank, message{Lost: &lostMessage{peer, m.ended}})
	default:
		m.memoryWaiters = include(m.memoryWaiters, rank)
	}
}

// include adds a rank to a list, unless it is there already.
func include(ranks []int, rank int) []int {
	if slices.Contains(ranks, rank) {
		return ranks
	}
	return append(ranks, rank)
}

func (c *Server) has(rank int) bool { return rank >= 0 && rank < len(c.members) }

// HasMembers reports whether any rank has joined.
func (c *Server) HasMembers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.members, func(m member) bool { return m.conn != nil })
}

// End records how a rank ended. Unless it ended with success, every other rank is
// told that it is lost. A rank that ends without joining is lost in any case.
func (c *Server) End(rank int, how string, success bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(rank, how, success)
}

func (c *Server) endLocked(rank int, how string, success bool) {
	if c.members[rank].conn == nil {
		how += " without joining the job"
		success = false
	}
	why := c.members[rank].aborted
	if why != "" {
		how += " after it gave up: " + why
	}
	c.members[rank].ended = how
	lost := lostMessage{rank, how}
	if c.cfg.Group && !c.assembly.complete {
		success = false
		if c.assembly.failed == nil {
			c.failAssembly(lost)
		}
	}
	switch {
	case !success:
		c.sendOthers(rank, message{Lost: &lost})
	case why != "" && c.cfg.OfRanks:
		c.sendOthers(rank, message{GaveUp: &lostMessage{rank, why}})
	}
}

// sendOthers sends a message to all ranks but one that have not ended.
func (c *Server) sendOthers(rank int, m message) {
	for other := range c.members {
		if other != rank && c.members[other].ended == "" {
			c.send(other, m)
		}
	}
}

// FailedPeer returns the peer because of which an operation of this rank failed,
// or -1. A rank may report it right before it ends, so FailedPeer waits until the
// rank's connection has been read to its end, WriteTimeout at most.
func (c *Server) FailedPeer(rank int) int {
	c.mu.Lock()
	drained := c.members[rank].drained
	c.mu.Unlock()
	if drained != nil {
		select {
		case <-drained:
		case <-time.After(WriteTimeout): // another process holds the connection open
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[rank].failedPeer
}

// TakeErrors returns the errors that ranks have sent since the last call, in the order of the
// lowest rank of each.
func (c *Server) TakeErrors() []failure.Shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	failures := make([]*failure.Failure, len(c.members))
	for rank := range c.members {
		failures[rank], c.members[rank].failure = c.members[rank].failure, nil
	}
	return failure.Share(failures)
}

// send sends a message to a rank, if it has joined. The connection of a rank that
// does not take the message is closed, and that rank ends.
func (c *Server) send(rank int, m message) {
	if conn := c.members[rank].conn; conn != nil && writeMessage(conn, m) != nil {
		conn.Close()
	}
}

// writeMessage writes a message within WriteTimeout, or fails.
func writeMessage(conn net.Conn, m message) error {
	conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
	return json.NewEncoder(conn).Encode(m)
}

// Close ends all connections. Ranks that still run end too.
func (c *Server) Close() {
	c.mu.Lock()
	c.closed = true
	c.query.end()
	c.assembly.stop()
	c.stop()
	c.server.Listener.Close()
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.serving.Wait()
}
