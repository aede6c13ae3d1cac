package launch

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/shm"
)

// memoryEnv is what rank 1 knows of a job of 2 that nobody else is in.
func memoryEnv() JobEnv { return JobEnv{Rank: 1, Size: 2, Secret: proof.NewSecret()} }

// offered returns what a job's ranks find, and ends the offer with the test.
func offered(t *testing.T, env JobEnv) (*os.File, error) {
	t.Helper()
	memory, offer, err := findMemory(env)
	t.Cleanup(func() {
		if offer != nil {
			offer.close()
		}
		if memory != nil {
			memory.Close()
		}
	})
	return memory, err
}

func TestThePageHasTheNumbersOfTheOffer(t *testing.T) {
	pagetest.CheckNumbersOf(t, "security.md", "Shared memory", map[string]int64{"passTimeout": int64(passTimeout)})
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	y, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}

func TestRanksOfOneJobTakeTheMemoryOfTheFirst(t *testing.T) {
	env := memoryEnv()
	first, err := offered(t, env)
	if err != nil {
		t.Fatal(err)
	}
	env.Rank = 0
	second, err := offered(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if !sameFile(first, second) {
		t.Error("two ranks of a host have different memory")
	}
	other, err := offered(t, memoryEnv())
	if err != nil || sameFile(first, other) {
		t.Errorf("another job has the same memory, or none: %v", err)
	}
}

// Its rank is killed when it has proven who it is, and has not passed the file yet.
func TestMemoryIsFoundAfterARankThatEndsWhileItOffersItsOwn(t *testing.T) {
	env := memoryEnv()
	listener, err := net.ListenUnix("unix", memoryAddress(env.Secret.Job(), env.host()))
	if err != nil {
		t.Fatal(err)
	}
	s := proof.Server{Prover: memoryProver(env, proof.Launcher), Listener: listener, Handle: func(_ int, conn net.Conn) {
		listener.Close()
		conn.Close()
	}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(t.Context())
	}()
	if _, err := offered(t, env); err != nil {
		t.Error(err)
	}
	listener.Close()
	<-served
}

// The address is seen in all containers of a network namespace, and root of one has the
// number of root of another. The stranger knows the job's name, which is no secret.
func TestAProcessOfTheSameUserWithoutTheSecretOffersNoMemory(t *testing.T) {
	env := memoryEnv()
	wrong := env
	wrong.Secret[0]++
	for what, act := range map[string]func(*net.UnixConn){
		"it passes a file at once": func(*net.UnixConn) {},
		"it answers first what it hears": func(conn *net.UnixConn) {
			io.CopyN(conn, conn, 72)
		},
		"it guesses the secret": func(conn *net.UnixConn) {
			one := make(chan net.Conn, 1)
			one <- conn
			close(one)
			s := proof.Server{Prover: memoryProver(wrong, proof.Launcher), Listener: channelListener(one), Handle: func(int, net.Conn) {}}
			s.Serve(t.Context())
		},
	} {
		t.Run(what, func(t *testing.T) {
			l, err := net.ListenUnix("unix", memoryAddress(env.Secret.Job(), 0))
			if err != nil {
				t.Fatal(err)
			}
			planted, err := shm.NewMemory(env.Size, env.Secret.Job())
			if err != nil {
				t.Fatal(err)
			}
			defer planted.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := l.AcceptUnix()
					if err != nil {
						return
					}
					act(conn)
					conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(planted.Fd())), nil)
					conn.Close()
				}
			}()
			memory, err := offered(t, env)
			if err == nil && sameFile(memory, planted) {
				t.Error("a rank shares memory with a stranger")
			} else if err == nil {
				t.Error("the rank offers its memory at the address of another")
			}
			l.Close()
			<-done
		})
	}
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

func TestAProcessOfTheSameUserWithoutTheSecretTakesNoMemory(t *testing.T) {
	env := memoryEnv()
	if _, err := offered(t, env); err != nil {
		t.Fatal(err)
	}
	wrong, elsewhere := env, proof.SecretOf(env.Secret.Reveal(), "memory of another host")
	wrong.Secret[0]++
	for what, prover := range map[string]*proof.Prover{
		"it says nothing":                         nil,
		"it guesses the secret":                   memoryProver(wrong, 1),
		"it relays what a rank says on its host":  proof.NewProver(elsewhere, 1, env.Size),
		"it relays what a rank says to rank zero": proof.NewProver(env.Secret, 1, env.Size),
	} {
		conn, err := net.DialUnix("unix", nil, memoryAddress(env.Secret.Job(), 0))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if prover != nil {
			if _, err := prover.Connect(t.Context(), conn, proof.Launcher); err == nil {
				t.Errorf("%s: the rank takes it for one of its job", what)
			}
		}
		rights := make([]byte, unix.CmsgSpace(4))
		if _, n, _, _, _ := conn.ReadMsgUnix(make([]byte, 1<<10), rights); n > 0 {
			t.Errorf("%s: it has the memory of the job", what)
		}
		conn.Close()
	}
}

func TestIdleConnectionsKeepNoRankFromItsMemory(t *testing.T) {
	env := memoryEnv()
	first, err := offered(t, env)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 * proof.UnprovenMax {
		conn, err := net.DialUnix("unix", nil, memoryAddress(env.Secret.Job(), 0))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	env.Rank = 0
	second, err := offered(t, env)
	if err != nil || !sameFile(first, second) {
		t.Errorf("a rank does not share the memory beside idle strangers: %v", err)
	}
}

// Otherwise programs under chorale run would take a request for each short message.
func TestRanksThatShareMemoryAloneHaveShortMessagesSentAtOnce(t *testing.T) {
	ends, err := shm.Loopback(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ends {
		defer e.Close()
	}
	a, b := &attached{ProcessEndpoint: ends[0], shared: ends[0]}, &attached{ProcessEndpoint: ends[1], shared: ends[1]}
	sender, receiver := transport.EagerOf(a), transport.EagerOf(b)
	if sender == nil || receiver == nil {
		t.Fatal("they have no EagerMessenger")
	}
	m := transport.Match{Context: 1, Tag: 2}
	var r transport.Request
	into := make([]byte, 1)
	if !sender.SendEager(t.Context(), 1, m, "bytes", []byte{7}) {
		t.Error("a message was not sent")
	}
	if got, ok := receiver.StartRecvEager(t.Context(), &r, 0, m, "bytes", into); !ok || got.Size != 1 || into[0] != 7 {
		t.Errorf("got %+v, %v, %v", got, ok, into)
	}
	if transport.EagerOf(&attached{ProcessEndpoint: noop{}, shared: ends[0]}) != nil {
		t.Error("so have ranks some of whose messages go elsewhere")
	}
}
