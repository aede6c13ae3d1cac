package control

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// attachRaw has a control serve a rank that has proven the secret, over a pipe.
func attachRaw(t *testing.T, c *Server, rank int) *rawConn {
	theirs, ours := net.Pipe()
	ours.SetDeadline(time.Now().Add(10 * time.Second))
	c.serving.Go(func() { c.serve(rank, theirs) })
	t.Cleanup(func() { ours.Close() })
	return &rawConn{t, ours, bufio.NewScanner(ours)}
}

func attachAndJoin(t *testing.T, c *Server, rank int) *rawConn {
	r := attachRaw(t, c, rank)
	r.send(joinLine(rank))
	r.expect(`{"joined":{}}`)
	return r
}

// FuzzControl has a rank that knows the secret write anything to the launcher. The
// launcher goes on to serve the other ranks, and knows of them what it knew before.
func FuzzControl(f *testing.F) {
	lines := func(objects string) string { return strings.ReplaceAll(objects, "}{", "}\n{") + "\n" }
	join := lines(joinLine(0))
	f.Add("")
	f.Add(join + lines(`{"addressQuery":1}{"memoryQuery":3}{"addressQuery":3}{"addressQuery":3}`))
	f.Add(join + lines(`{"failedPeer":2}{"failedPeer":0}{"failedPeer":-1}{"failedPeer":99}`))
	f.Add(join + lines(`{"cmaDenied":true}{"cmaDenied":true}{"leave":true}{"leave":true}{"addressQuery":0}`))
	f.Add(join + lines(`{"join":{}}{"joined":{}}{"refused":"why"}{"left":1}{"lost":{"rank":1,"reason":"so"}}`))
	f.Add(lines(`{"join":{"fallbackReason":"none","memory":"m"}}{"addressReply":{"rank":1,"address":"x"}}`))
	f.Add(join + strings.Repeat(lines(`{"addressQuery":3}`), 200))
	f.Add(join + lines(`{"stalls":[{"context":1,"peers":[1,0,-1,99]}]}{"stalls":[{"context":1,"peers":[1,0,-1,99]}]}{"stalls":[]}{"stalls":null}`))
	f.Add(join + lines(`{"regroup":{"id":1,"members":[0,1]}}{"regroup":{"id":1,"members":[]}}{"regroup":{"id":1,"gaveUp":"why"}}{"regrouped":{}}`))
	f.Add(lines(`{"newcomer":true}{"leave":true}`))
	f.Add(join + strings.Repeat("x", 2*MaxMessage))
	f.Fuzz(func(t *testing.T, says string) {
		const size = 4 // rank 0 writes anything, and rank 3 never joins
		var reports atomic.Int32
		c := newTestServerWith(t, size, false, func(string, ...any) { reports.Add(1) })
		one, two := attachAndJoin(t, c, 1), attachAndJoin(t, c, 2)
		one.send(`{"addressQuery":3}`)
		one.send(`{"memoryQuery":2}`)
		one.expect(`{"memoryReply":{"rank":2,"memory":""}}`)
		c.mu.Lock()
		before := slices.Clone(c.members[1:3])
		c.mu.Unlock()

		zero := attachRaw(t, c, 0)
		var replies sync.WaitGroup
		replies.Go(func() { io.Copy(io.Discard, zero.conn) })
		io.WriteString(zero.conn, says) // an error: the launcher has ended the connection
		zero.conn.Close()
		replies.Wait()
		if peer := c.FailedPeer(0); peer < -1 || peer >= size {
			t.Errorf("rank 0 has failed because of rank %d", peer)
		}

		c.mu.Lock()
		for i, m := range before {
			now := c.members[i+1]
			if now.conn != m.conn || now.Address != m.Address || now.Memory != m.Memory || now.failedPeer != m.failedPeer || now.left || now.ended != "" {
				t.Errorf("%q makes rank %d %+v, before %+v", says, i+1, now, m)
			}
		}
		if three := c.members[3]; three.conn != nil || len(three.addressWaiters) > size || len(three.memoryWaiters) > size {
			t.Errorf("%q makes rank 3 %+v", says, three)
		}
		c.mu.Unlock()
		two.send(`{"addressQuery":1}`)
		two.expect(`{"addressReply":{"rank":1,"address":"here:1"}}`)
		attachAndJoin(t, c, 3)
		one.expect(`{"addressReply":{"rank":3,"address":"here:3"}}`)
		if n := reports.Load(); n > 2 {
			t.Errorf("%q makes %d reports", says, n)
		}
	})
}

// FuzzClient has a launcher that has proven the secret write anything to a rank. The
// rank's queries are answered with what was asked for, or not at all.
func FuzzClient(f *testing.F) {
	f.Add("")
	f.Add(`{"addressReply":{"rank":1,"address":"here"}}` + "\n" + `{"memoryReply":{"rank":1,"memory":"m"}}` + "\n")
	f.Add(strings.Repeat(`{"left":1}`+"\n"+`{"lost":{"rank":1,"reason":"killed"}}`+"\n", 3))
	f.Add(`{"regrouped":{"id":1,"ranks":[]}}` + "\n" + `{"regroupFailed":{"id":1,"rank":-1}}` + "\n" + `{"dismissed":true}` + "\n")
	f.Add(`{"lost":{"rank":-1,"reason":""}}` + "\n" + `{"gaveUp":{"rank":-1,"reason":""}}` + "\n" + `{"left":99}` + "\n" + `{"joined":{}}` + "\n")
	f.Add(strings.Repeat("x", 2*MaxMessage))
	f.Fuzz(func(t *testing.T, says string) {
		conn, launcher := net.Pipe()
		c := &Client{conn: conn, in: messageScanner(conn, MaxMessage), pending: make(map[query][]chan reply)}
		queries := []query{{1, false}, {1, false}, {1, true}, {2, false}}
		waiters := make([]chan reply, len(queries))
		for i, q := range queries {
			waiters[i] = make(chan reply, 1)
			c.pending[q] = append(c.pending[q], waiters[i])
		}
		go func() {
			launcher.SetDeadline(time.Now().Add(10 * time.Second))
			io.WriteString(launcher, says) // an error: the rank has stopped reading
			launcher.Close()
		}()
		lost := 0
		count := func(int, string) { lost++ }
		if c.Receive(count, count) {
			t.Error("the rank takes itself for the side that closed")
		}
		conn.Close()
		if lines := strings.Count(says, "\n") + 1; lost > lines {
			t.Errorf("%d ranks are lost or have given up in %d lines", lost, lines)
		}
		for i, q := range queries {
			select {
			case r := <-waiters[i]:
				var peer *transport.PeerError
				if r.err != nil && (!errors.As(r.err, &peer) || peer.Peer != q.rank || r.text != "" && (q.memory || peer.Err == transport.ErrLost)) {
					t.Errorf("%+v is answered %+v", q, r)
				}
			default:
			}
			if len(waiters[i]) > 0 {
				t.Errorf("%+v is answered twice", q)
			}
		}
	})
}
