package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/mixed"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// Join returns this process's endpoint in the job in which a launcher has
// started it, and true. A process that no launcher has started gets the
// endpoint of the only rank of a job, and false.
//
// When the launcher is gone before the endpoint is closed, Join's process ends
// with status 1, whatever it is doing: a job does not outlive its launcher. A
// process joins once.
func Join(ctx context.Context) (ep transport.Endpoint, joined bool, err error) {
	place, err := Environment()
	if err != nil {
		return nil, false, err
	}
	if place.Transport == "inproc" {
		if place.Size > 1 {
			return nil, true, fmt.Errorf("the %d ranks of this job are goroutines of one process: use chorale.Main, or another transport than inproc", place.Size)
		}
		return inproc.New(1).Endpoint(0), place.Launched, nil
	}
	switch {
	case place.Mixes:
		ep, err = joinMixed(ctx, place)
	case place.Transport == "shm":
		ep, err = joinShared(ctx, place)
	default:
		ep, err = joinTCP(ctx, place)
	}
	return ep, true, err
}

// joinShared joins a job of processes that share memory.
func joinShared(ctx context.Context, place Place) (transport.Endpoint, error) {
	near, memory, err := mapMemory(place)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w, or --transport tcp", place.Rank, err)
	}
	launcher, err := dial(ctx, place, joinMessage{Memory: memory})
	if err != nil {
		near.Close()
		return nil, err
	}
	return attach(near, near, launcher), nil
}

// joinTCP joins a job of processes that exchange messages over TCP.
func joinTCP(ctx context.Context, place Place) (transport.Endpoint, error) {
	far, launcher, err := dialTCP(ctx, place, joinMessage{})
	if err != nil {
		return nil, err
	}
	return attach(far, nil, launcher), nil
}

// joinMixed joins a job of processes of which some share memory. One that cannot
// share any reaches all others over TCP.
func joinMixed(ctx context.Context, place Place) (transport.Endpoint, error) {
	near, memory, err := mapMemory(place)
	if err != nil {
		far, launcher, err := dialTCP(ctx, place, joinMessage{Without: err.Error()})
		if err != nil {
			return nil, err
		}
		return attach(far, nil, launcher), nil
	}
	far, launcher, err := dialTCP(ctx, place, joinMessage{Memory: memory})
	if err != nil {
		near.Close()
		return nil, err
	}
	return attach(mixed.New(near, far, func(ctx context.Context, rank int) (bool, error) {
		theirs, err := launcher.memoryOf(ctx, rank)
		return theirs == memory, err
	}), near, launcher), nil
}

// mapMemory makes the endpoint of ranks that share memory, and says which memory
// that is.
func mapMemory(place Place) (near *shm.Endpoint, name string, err error) {
	bytes, err := shm.MemoryLen(place.Size)
	if err != nil {
		return nil, "", err
	}
	file, name, err := inherited(place.Memory, bytes)
	if err != nil {
		return nil, "", fmt.Errorf("the job's memory: %w: want every process on the way from the launcher to pass it on", err)
	}
	defer file.Close()
	if host, ok := os.LookupEnv(envHost); ok {
		name = host + " " + name
	}
	near, err = shm.New(shm.Config{Rank: place.Rank, Size: place.Size, Token: place.Token, Memory: file})
	return near, name, err
}

// dialTCP makes the endpoint of ranks that exchange messages over TCP, and joins
// the job.
func dialTCP(ctx context.Context, place Place, me joinMessage) (*tcp.Endpoint, *client, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("rank %d: listening for the other ranks: %w", place.Rank, err)
	}
	me.Address = listener.Addr().String()
	launcher, err := dial(ctx, place, me)
	if err != nil {
		listener.Close()
		return nil, nil, err
	}
	far, err := tcp.New(tcp.Config{
		Rank: place.Rank, Size: place.Size, Token: place.Token,
		Listener: listener, Lookup: launcher.lookup,
	})
	if err != nil {
		launcher.close()
		listener.Close()
		return nil, nil, err
	}
	return far, launcher, nil
}

// attach has an endpoint hear from the launcher. Near is the part of it that uses
// shared memory, if any.
func attach(ep mixed.Part, near *shm.Endpoint, launcher *client) *attached {
	a := &attached{Part: ep, near: near, launcher: launcher, done: make(chan struct{})}
	go a.listen()
	return a
}

// An attached endpoint is one that tells the launcher, and is told by it, which
// ranks are lost.
type attached struct {
	mixed.Part
	near     *shm.Endpoint
	launcher *client
	done     chan struct{} // closed when nothing listens to the launcher any more
	closing  sync.Once
	closed   error
}

func (a *attached) listen() {
	defer close(a.done)
	if a.launcher.listen(a.Lost) {
		return
	}
	fmt.Fprintf(os.Stderr, "chorale: rank %d: the launcher is gone, so this rank ends\n", a.Rank())
	os.Exit(1)
}

func (a *attached) Exchange(ctx context.Context, step transport.Step) error {
	return a.heard(a.Part.Exchange(ctx, step))
}

func (a *attached) Send(ctx context.Context, to int, stamp transport.Match, kind string, data []byte) error {
	return a.heard(a.Part.Send(ctx, to, stamp, kind, data))
}

func (a *attached) Recv(ctx context.Context, from int, stamp transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	e, err := a.Part.Recv(ctx, from, stamp, kind, into)
	return e, a.heard(err)
}

func (a *attached) Probe(ctx context.Context, from int, stamp transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	e, found, err := a.Part.Probe(ctx, from, stamp, wait)
	return e, found, a.heard(err)
}

// heard tells the launcher on whose account something failed, if it did.
func (a *attached) heard(err error) error {
	if err != nil {
		a.blame(err)
	}
	return err
}

// blame is apart from heard, which allocates nothing so.
func (a *attached) blame(err error) {
	var peer *transport.PeerError
	if errors.As(err, &peer) {
		a.launcher.blame(peer.Peer)
	}
}

func (a *attached) Close() error {
	a.closing.Do(func() {
		if a.near != nil && a.near.CMADenied() {
			_ = a.launcher.say(message{Denied: true}) // only chorale run -v tells it; a launcher that is gone ends this process anyway
		}
		a.launcher.leave(a.Rank())
		a.closed = a.Part.Close()
		a.launcher.close()
		<-a.done
	})
	return a.closed
}
