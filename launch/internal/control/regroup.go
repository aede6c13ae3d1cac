package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// A RegroupMessage asks for a new endpoint for some ranks, or says that the sender waits for
// it no longer.
type RegroupMessage struct {
	ID      uint64 `json:"id"`
	Members []int  `json:"members,omitempty"` // ranks of the job, in ascending order
	GaveUp  string `json:"gaveUp,omitempty"`  // why; then there are no members
}

// A Group is the ranks that make an endpoint together, each by joining at the control server
// of the group.
type Group struct {
	ID      uint64 `json:"id"`              // of the RegroupMessage
	Number  int    `json:"number"`          // of the group in the job, from 1
	Control string `json:"control"`         // the addresses of its control server
	Ranks   []int  `json:"ranks"`           // of the job, in ascending order
	Hosts   []int  `json:"hosts,omitempty"` // as in JoinedMessage
}

// A RegroupFailure says why ranks get no new endpoint.
type RegroupFailure struct {
	ID     uint64 `json:"id"`
	Rank   int    `json:"rank"` // of the job, because of which; -1 if it is none
	Left   bool   `json:"left,omitempty"`
	GaveUp bool   `json:"gaveUp,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Err returns the failure as an error: a [transport.PeerError] with a rank of the job, if
// there is one.
func (f RegroupFailure) Err() error {
	err := transport.ErrLost
	switch {
	case f.Rank < 0:
		return errors.New(f.Reason)
	case f.Left:
		err = transport.ErrLeft
	case f.GaveUp:
		err = transport.ErrAborted
	}
	return &transport.PeerError{Peer: f.Rank, Err: err, Reason: f.Reason}
}

// maxGroup is what the ranks of a group and their hosts add at most to a message.
const maxGroup = 2 * hostLen << 16

// A groupReply is the answer to a RegroupMessage.
type groupReply struct {
	group Group
	err   error
}

// Regroup asks the launcher for a new endpoint for these ranks of the job, and waits until
// all of them have. When ctx ends before, the others get an error.
func (c *Client) Regroup(ctx context.Context, id uint64, members []int) (Group, error) {
	answer := make(chan groupReply, 1)
	if err := c.askGroup(id, members, answer); err != nil {
		return Group{}, err
	}
	select {
	case r := <-answer:
		return r.group, r.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.groups, id)
		c.mu.Unlock()
		err := context.Cause(ctx)
		c.LeaveGroup(id, err)
		return Group{}, err
	}
}

func (c *Client) askGroup(id uint64, members []int, answer chan groupReply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[id] != nil {
		return errors.New("the id is that of another call: want one for each call")
	}
	if err := c.sendLocked(message{Regroup: &RegroupMessage{ID: id, Members: members}}); err != nil {
		return err
	}
	c.groups[id] = answer
	return nil
}

// LeaveGroup tells the launcher that this rank gives up a Regroup, also one that has been
// answered.
func (c *Client) LeaveGroup(id uint64, why error) {
	c.report(message{Regroup: &RegroupMessage{ID: id, GaveUp: cut(why.Error(), maxReason)}})
}

// answerGroup passes the answer to the call that waits for it.
func (c *Client) answerGroup(id uint64, r groupReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.groups[id]; answer != nil {
		answer <- r
		delete(c.groups, id)
	}
}

// ErrDismissed says that the job is over, and that a newcomer has had no part in it.
var ErrDismissed = errors.New("the job has ended")

// Wait waits, in a process that was started in the place of a lost rank, until other ranks
// regroup. Until done is called, the launcher takes the end of the process's connection for
// its end; joined says whether it has joined the group.
func Wait(ctx context.Context, cfg DialConfig) (g Group, done func(joined bool), err error) {
	reached, cancel := context.WithTimeoutCause(ctx, JoinTimeout, fmt.Errorf("no answer within %v", JoinTimeout))
	conn, err := within(reached, JoinTimeout, cfg, func() (net.Conn, error) { return cfg.open(reached) })
	cancel()
	if err != nil {
		return g, nil, err
	}
	conn.SetDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	g, err = wait(conn)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return g, nil, err
	}
	return g, func(joined bool) {
		if joined {
			_ = writeMessage(conn, message{Leave: true}) // if the launcher is gone, this process ends anyway
		}
		conn.Close()
	}, nil
}

func wait(conn net.Conn) (g Group, err error) {
	if err := writeMessage(conn, message{Newcomer: true}); err != nil {
		return g, fmt.Errorf("the launcher is gone: %w", err)
	}
	in := messageScanner(conn, MaxMessage+maxGroup)
	var m message
	switch {
	case !in.Scan():
		return g, errors.Join(errors.New("the launcher is gone"), in.Err())
	case json.Unmarshal(in.Bytes(), &m) != nil:
	case m.Dismissed:
		return g, ErrDismissed
	case m.Refused != "":
		return g, errors.New(m.Refused)
	case m.Regrouped != nil:
		return *m.Regrouped, nil
	}
	return g, fmt.Errorf("the launcher answers %.200q: want regrouped or dismissed", in.Text())
}

// A Newcomer is the launcher's end of the connection of a process that waits for a group.
type Newcomer struct {
	Rank int // of the job
	conn net.Conn
	mu   sync.Mutex
}

// Take tells the newcomer of its group.
func (n *Newcomer) Take(g Group) { n.send(message{Regrouped: &g}) }

// Dismiss tells the newcomer that the job is over.
func (n *Newcomer) Dismiss() { n.send(message{Dismissed: true}) }

// send sends a message. A newcomer that does not take it is closed, and gives up.
func (n *Newcomer) send(m message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if writeMessage(n.conn, m) != nil {
		n.conn.Close()
	}
}

// serveNewcomer serves a newcomer until its connection ends.
func (c *Server) serveNewcomer(rank int, conn net.Conn, in *bufio.Scanner) {
	n := &Newcomer{Rank: rank, conn: conn}
	conn.SetReadDeadline(time.Time{})
	c.cfg.Newcomer(n)
	joined := false
	for in.Scan() {
		var m message
		joined = json.Unmarshal(in.Bytes(), &m) == nil && m.Leave
	}
	c.cfg.NewcomerGone(n, joined)
}

// SendGroup answers a rank's RegroupMessage.
func (c *Server) SendGroup(rank int, g Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(rank, message{Regrouped: &g})
}

// SendFailure answers a rank's RegroupMessage with a failure.
func (c *Server) SendFailure(rank int, f RegroupFailure) {
	f.Reason = cut(f.Reason, maxReason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(rank, message{RegroupFailed: &f})
}

// Assembly reports whether all ranks of a group have joined, or whether they never will.
func (c *Server) Assembly() (complete, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.assembly.complete, c.assembly.failed != nil
}

// Ended returns how a rank has ended, "" if it has not, and whether it has left.
func (c *Server) Ended(rank int) (how string, left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[rank].ended, c.members[rank].left
}

// assemblyError refuses a rank of a group of which another one was lost before all had
// joined.
type assemblyError struct{ lost lostMessage }

func (e *assemblyError) Error() string {
	return fmt.Sprintf("rank %d is lost: %s", e.lost.Rank, e.lost.Reason)
}

// failAssembly records, in the server of a group, that no endpoint is made since a rank is
// lost. The listener stays for the ranks that have not come yet, which are told.
func (c *Server) failAssembly(lost lostMessage) {
	c.assembly.failed = &lost
	time.AfterFunc(JoinTimeout, func() { c.server.Listener.Close() })
}
