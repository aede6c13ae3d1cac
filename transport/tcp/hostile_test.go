package tcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/proof/prooftest"
	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// sum sends a number to all other ranks, and returns an error unless the sum of all is
// right.
func sum(e *Endpoint) error {
	mine := binary.LittleEndian.AppendUint64(nil, uint64(e.Rank()+1))
	theirs := make([]byte, 8*e.Size())
	copy(theirs[8*e.Rank():], mine)
	step := transport.Step{Signature: sig}
	for peer := range e.Size() {
		if peer != e.Rank() {
			step.Sends = append(step.Sends, transport.Send{To: []int{peer}, Data: mine})
			step.Recvs = append(step.Recvs, transport.Recv{From: peer, Into: theirs[8*peer:][:8]})
		}
	}
	if err := e.Exchange(context.Background(), step); err != nil {
		return err
	}
	got := uint64(0)
	for peer := range e.Size() {
		got += binary.LittleEndian.Uint64(theirs[8*peer:])
	}
	if want := uint64(e.Size() * (e.Size() + 1) / 2); got != want {
		return fmt.Errorf("the sum is %d, want %d", got, want)
	}
	return nil
}

func TestStrangersKeepNoJobFromItsSum(t *testing.T) {
	for name, k := range map[string]kind{"plain": bySystem, "TLS": byTLS} {
		t.Run(name, func(t *testing.T) {
			ends, err := k(4)
			cluster.Job(t, ends, err)
			for _, e := range ends {
				prooftest.Attack(t, e.cfg.Listener.Addr().String())
			}
			each(t, ends, sum)
		})
	}
}

// Two processes that know the secret and claim the same rank are a mistake of the user.
// The first has the link, and the second changes nothing.
func TestASecondRankOfTheSameNumberChangesNothing(t *testing.T) {
	e, c := impostor(t)
	refusal(t, e, 1, appendRequest(nil, 2))
	if _, err := c.Write(frame(header{kind: messageFrame, context: 1, sequence: 1, total: 0}, "test")); err != nil {
		t.Fatal(err)
	}
	if err := receive(context.Background(), e, sig, 1, nil); err != nil {
		t.Error(err)
	}
}

// between makes an endpoint of rank 1 of two whose peer is reached through a listener
// of the test.
func between(t *testing.T) (*Endpoint, net.Listener) {
	t.Helper()
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		listeners[i] = l
	}
	e, err := New(Config{Rank: 1, Size: 2, Listener: listeners[1], Lookup: func(context.Context, int) (string, error) {
		return listeners[0].Addr().String(), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, listeners[0]
}

// A listener drops the connection of a rank among those of strangers, or because one of
// the two was stopped in the middle of the handshake.
func TestAConnectionThatIsDroppedInTheHandshakeIsMadeAnew(t *testing.T) {
	e, l := between(t)
	prover := proof.NewProver(proof.Secret{}, 0, 2)
	var dropping sync.WaitGroup
	dropping.Go(func() {
		for i := range 3 {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			conn.SetDeadline(time.Now().Add(proof.Timeout))
			switch i {
			case 1: // in the middle of its challenge
				io.ReadFull(conn, make([]byte, 20))
			case 2: // after the proofs of both
				relay(t, prover, conn)
			}
			conn.Close()
		}
		zero, err := New(Config{Size: 2, Listener: l, Lookup: func(context.Context, int) (string, error) {
			return e.cfg.Listener.Addr().String(), nil
		}})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { zero.Close() })
		if err := sum(zero); err != nil {
			t.Error(err)
		}
	})
	if err := sum(e); err != nil {
		t.Error(err)
	}
	dropping.Wait()
}

// A rank that has reached another one by mistake says so.
func TestTheWrongRankAtAnAddressIsAnError(t *testing.T) {
	ends := job(t, 3)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Size: 3, Listener: l, Secret: ends[0].cfg.Secret, Lookup: func(context.Context, int) (string, error) {
		return ends[2].cfg.Listener.Addr().String(), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	checkPeer(t, receive(context.Background(), e, sig, 1, nil), 1, transport.ErrLost, "belongs to this job, but is not rank 1")
}

// A peer that is stopped, and never continued, keeps no call longer than its context.
func TestAPeerThatDoesNotAnswerHoldsUpNoCall(t *testing.T) {
	e, _ := between(t) // the system accepts, and nobody else does
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Recv(ctx, 0, transport.Match{Context: 1, Tag: 1}, "bytes", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Recv: %v, want %v", err, context.DeadlineExceeded)
	}
	if err := receive(ctx, e, sig, 0, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Exchange: %v, want %v", err, context.DeadlineExceeded)
	}
	e.Close()
}

// A flakyListener has no descriptor for its first connections.
type flakyListener struct {
	net.Listener
	failures *int
}

func (l flakyListener) Accept() (net.Conn, error) {
	if *l.failures--; *l.failures >= 0 {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestAListenerRecoversWhenDescriptorsAreFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failures := 10
	zero, err := New(Config{Size: 2, Listener: flakyListener{l, &failures}, Lookup: func(ctx context.Context, _ int) (string, error) {
		<-ctx.Done() // rank 1 dials alone
		return "", ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	one, err := New(Config{Rank: 1, Size: 2, Listener: own, Lookup: func(context.Context, int) (string, error) {
		return l.Addr().String(), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	each(t, []*Endpoint{zero, one}, sum)
}

// A rank that leaves may wait for this one to take its messages, although the launcher
// says already that it leaves.
func TestARankThatLeavesIsDialedWhileItIsThere(t *testing.T) {
	ends := job(t, 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends[1].Close()
	one, err := New(Config{Rank: 1, Size: 2, Listener: l, Secret: ends[0].cfg.Secret, Lookup: func(context.Context, int) (string, error) {
		return ends[0].cfg.Listener.Addr().String(), &transport.PeerError{Peer: 0, Err: transport.ErrLeft}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	into := make([]byte, 1)
	received := make(chan error, 1)
	go func() {
		_, err := one.Recv(context.Background(), 0, transport.Match{Context: 1, Tag: 1}, "bytes", into)
		received <- err
	}()
	until(ends[0], func() bool { return ends[0].link(1).phase == up })
	if err := ends[0].Send(context.Background(), 1, transport.Match{Context: 1, Tag: 1}, "bytes", []byte{7}); err != nil {
		t.Error(err)
	}
	if err := <-received; err != nil || into[0] != 7 {
		t.Errorf("received %d, %v", into[0], err)
	}

	absent := testenv.FreeAddress(t, "127.0.0.1")
	gone, err := New(Config{Rank: 1, Size: 2, Listener: closedListener(t), Secret: ends[0].cfg.Secret, Lookup: func(context.Context, int) (string, error) {
		return absent, transport.ErrLeft
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	checkPeer(t, receive(context.Background(), gone, sig, 0, nil), 0, transport.ErrLeft, "")
}

// A stranger may listen at the address of a rank that has left, and say nothing.
func TestNobodyWaitsForAStrangerAtTheAddressOfARankThatHasLeft(t *testing.T) {
	for name, first := range map[string]error{"it was leaving": transport.ErrLeft, "it was there": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			own, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var lookups atomic.Int32
			e, err := New(Config{Size: 2, Listener: own, Lookup: func(context.Context, int) (string, error) {
				if lookups.Add(1) == 1 {
					return silent.Addr().String(), first
				}
				return "", transport.ErrLeft
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			checkPeer(t, receive(ctx, e, sig, 1, nil), 1, transport.ErrLeft, "")
		})
	}
}

// closedListener returns a listener that has been closed.
func closedListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l
}

// relay has a server take a connection up to the request behind the proof.
func relay(t *testing.T, prover *proof.Prover, conn net.Conn) {
	one := make(chan net.Conn, 1)
	one <- conn
	close(one)
	s := proof.Server{Prover: prover, Listener: channelListener(one), Handle: func(from int, conn net.Conn) {
		var b [requestLen]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil || from != 1 || checkRequest(b[:], 2) != "" {
			t.Errorf("rank %d sends %x, %v", from, b, err)
		}
	}}
	s.Serve(t.Context())
}

// A channelListener accepts the connections of a channel.
type channelListener chan net.Conn

func (l channelListener) Accept() (net.Conn, error) {
	if conn, ok := <-l; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (l channelListener) Close() error   { return nil }
func (l channelListener) Addr() net.Addr { return nil }

// FuzzHandshake plays a rank that knows the secret and sends any request, and one that
// sends any reply. What is understood survives being written again.
func FuzzHandshake(f *testing.F) {
	f.Add(appendRequest(nil, 2))
	f.Add(appendRequest(nil, 3))
	for r := accepted; r <= refused+1; r++ {
		f.Add(appendReply(nil, r, "why"))
	}
	f.Add([]byte{version, byte(refused), 0xff, 0xff})
	f.Fuzz(func(t *testing.T, says []byte) {
		if len(says) >= requestLen && checkRequest(says, 2) == "" {
			again := appendRequest(nil, 2)
			again[1], again[2], again[3] = says[1], says[2], says[3]
			if !bytes.Equal(again, says[:requestLen]) {
				t.Errorf("the request %x is taken", says)
			}
		}
		r, text, err := readReply(bytes.NewReader(says))
		switch {
		case err == nil && !bytes.HasPrefix(says, appendReply(nil, r, text)):
			t.Errorf("%x is read as reply %d %q", says, r, text)
		case errors.Is(err, proof.ErrDropped) && len(says) > replyLen+reasonMax:
			t.Errorf("%x is too short a reply", says)
		}
		if len(says) < requestLen {
			return
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		e, err := New(Config{Size: 2, Listener: l, Lookup: func(ctx context.Context, _ int) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}})
		if err != nil {
			t.Skip(err)
		}
		defer e.Close()
		c := callAs(t, e, 1, says)
		defer c.Close()
		r, text, err = readReply(c)
		if want := checkRequest(says, 2); err != nil || want == "" && r != accepted || want != "" && (r != refused || text != want) {
			t.Errorf("%x gets the reply %d %q, %v; want %q", says, r, text, err, want)
		}
	})
}

func TestAReplyIsCutOffWhereTheOtherSideWouldRefuseIt(t *testing.T) {
	r, text, err := readReply(bytes.NewReader(appendReply(nil, refused, strings.Repeat("x", 2*reasonMax))))
	if r != refused || len(text) != reasonMax || err != nil {
		t.Errorf("reply %d with %d bytes, %v", r, len(text), err)
	}
}
