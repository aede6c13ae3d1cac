package launch

import (
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// A control is the launcher's end of the control connections: it knows which
// rank can be reached where, and which have ended.
type control struct {
	listener net.Listener
	token    [16]byte
	shared   bool // all ranks must share memory
	report   func(format string, args ...any)
	serving  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]bool
	members []member
}

// A member is what is known of one rank.
type member struct {
	conn    net.Conn      // nil until the rank joins
	read    chan struct{} // closed when conn has been read to its end
	address string        // "" if it has none
	memory  string        // the same
	asked   []int         // ranks that wait to hear where it is
	shares  []int         // ranks that wait to hear which memory it has mapped
	blames  int           // the rank on whose account an exchange failed, or -1
	left    bool          // it needs no other rank any more
	ended   string        // how the process ended; "" while it runs
}

const (
	joinTime  = 10 * time.Second // for a connection to say who it is
	writeTime = 2 * time.Second  // for a rank to take a message
)

// newControl listens on the loopback interface for the ranks of a job. If it is
// shared, only ranks that share one memory may join.
func newControl(size int, token [16]byte, shared bool, report func(format string, args ...any)) (*control, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the ranks: %w", err)
	}
	c := &control{
		listener: listener,
		token:    token,
		shared:   shared,
		report:   report,
		conns:    make(map[net.Conn]bool),
		members:  make([]member, size),
	}
	for i := range c.members {
		c.members[i].blames = -1
	}
	c.serving.Go(c.accept)
	return c, nil
}

func (c *control) address() string { return c.listener.Addr().String() }

func (c *control) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			if c.isClosed() {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors: some may come back
			continue
		}
		c.mu.Lock()
		c.conns[conn] = true
		if c.closed {
			conn.Close()
		}
		c.mu.Unlock()
		c.serving.Go(func() { c.serve(conn) })
	}
}

func (c *control) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// serve listens to one rank until it leaves or ends.
func (c *control) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}()
	conn.SetReadDeadline(time.Now().Add(joinTime))
	in := messages(conn)
	if !in.Scan() {
		return
	}
	var first message
	if err := json.Unmarshal(in.Bytes(), &first); err != nil || first.Join == nil {
		return // not one of ours
	}
	rank := first.Join.Rank
	read, err := c.join(conn, *first.Join)
	if err != nil {
		send(conn, message{Refused: err.Error()})
		return
	}
	defer close(read)
	conn.SetReadDeadline(time.Time{})
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			return
		}
		c.hear(rank, m)
	}
}

// join notes that a rank is there, tells it so, and tells those who have asked
// for it. The rank's connection is read until the channel is closed.
func (c *control) join(conn net.Conn, j joinMessage) (read chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if subtle.ConstantTimeCompare([]byte(j.Token), []byte(hex.EncodeToString(c.token[:]))) != 1 {
		return nil, fmt.Errorf("the token is not that of this job")
	}
	if j.Rank < 0 || j.Rank >= len(c.members) {
		return nil, fmt.Errorf("no rank %d: the job has ranks 0 to %d", j.Rank, len(c.members)-1)
	}
	m := &c.members[j.Rank]
	if m.conn != nil {
		return nil, fmt.Errorf("rank %d has joined already", j.Rank)
	}
	for other := range c.members {
		if o := &c.members[other]; c.shared && o.conn != nil && o.memory != j.Memory {
			return nil, fmt.Errorf("it does not share memory with rank %d: want --transport auto or tcp for ranks on several hosts", other)
		}
	}
	m.conn, m.address, m.memory, m.read = conn, j.Address, j.Memory, make(chan struct{})
	send(conn, message{Joined: true})
	if j.Without != "" {
		go c.report("rank %d shares no memory, and is reached over TCP: %s", j.Rank, j.Without) // it may take long
	}
	for _, asker := range m.asked {
		c.tell(asker, message{At: &atMessage{j.Rank, j.Address}})
	}
	for _, asker := range m.shares {
		c.tell(asker, message{Maps: &mapsMessage{j.Rank, j.Memory}})
	}
	m.asked, m.shares = nil, nil
	return m.read, nil
}

// hear does what a rank asks.
func (c *control) hear(rank int, m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Where != nil && c.has(*m.Where):
		peer := &c.members[*m.Where]
		switch {
		case peer.left:
			c.tell(rank, message{Left: m.Where})
		case peer.ended != "":
			c.tell(rank, message{Lost: &lostMessage{*m.Where, peer.ended}})
		case peer.conn != nil:
			c.tell(rank, message{At: &atMessage{*m.Where, peer.address}})
		default:
			peer.asked = append(peer.asked, rank)
		}
	case m.Shares != nil && c.has(*m.Shares):
		peer := &c.members[*m.Shares]
		switch {
		case peer.conn != nil:
			c.tell(rank, message{Maps: &mapsMessage{*m.Shares, peer.memory}})
		case peer.ended != "":
			c.tell(rank, message{Lost: &lostMessage{*m.Shares, peer.ended}})
		default:
			peer.shares = append(peer.shares, rank)
		}
	case m.Blames != nil && c.has(*m.Blames):
		c.members[rank].blames = *m.Blames
	case m.Denied:
		go c.report("rank %d may not read the memory of other ranks: long messages were copied twice", rank)
	case m.Leaves:
		c.members[rank].left = true
		c.tell(rank, message{Left: &rank})
	}
}

func (c *control) has(rank int) bool { return rank >= 0 && rank < len(c.members) }

// hasMembers reports whether any rank has joined.
func (c *control) hasMembers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.members, func(m member) bool { return m.conn != nil })
}

// end notes how a rank has ended, and tells every other rank if it is lost.
func (c *control) end(rank int, how string, well bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[rank].conn == nil {
		how += " without joining the job"
		well = false // for those that wait for it
	}
	c.members[rank].ended = how
	if well {
		return
	}
	for other := range c.members {
		if other != rank && c.members[other].ended == "" {
			c.tell(other, message{Lost: &lostMessage{rank, how}})
		}
	}
}

// blame returns the rank on whose account an exchange of this rank failed, or
// -1. A rank that has ended may have said so just before: blame waits until its
// connection has been read to the end.
func (c *control) blame(rank int) int {
	c.mu.Lock()
	read := c.members[rank].read
	c.mu.Unlock()
	if read != nil {
		select {
		case <-read:
		case <-time.After(writeTime): // the rank has passed its connection on
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[rank].blames
}

// tell sends a message to a rank that has joined. A rank that takes nothing in
// loses its connection, and ends.
func (c *control) tell(rank int, m message) {
	if conn := c.members[rank].conn; conn != nil && send(conn, m) != nil {
		conn.Close()
	}
}

func send(conn net.Conn, m message) error {
	conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := conn.Write(encode(m))
	return err
}

// close ends all connections. Ranks that still run end too.
func (c *control) close() {
	c.mu.Lock()
	c.closed = true
	c.listener.Close()
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.serving.Wait()
}
