package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/mixed"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// Join returns this process's endpoint in the job in which a launcher started it,
// and true. A process that no launcher started gets the endpoint of the only rank
// of a job, and false. A process joins once.
//
// Join fails if the environment is inconsistent, if the job runs its ranks as
// goroutines, or if the launcher cannot be reached or refuses the rank. It returns
// without waiting for the other ranks. If ctx ends before the launcher answers,
// Join fails with its cause.
//
// If the launcher dies before the endpoint is closed, the process exits with
// status 1, whatever it is doing: a job does not outlive its launcher.
func Join(ctx context.Context) (ep transport.Endpoint, joined bool, err error) {
	env, err := Environment()
	if err != nil {
		return nil, false, err
	}
	if env.Transport == "inproc" {
		if env.Size > 1 {
			return nil, true, fmt.Errorf("the %d ranks of this job are goroutines of one process: use chorale.Main, or another transport than inproc", env.Size)
		}
		return inproc.New(1).Endpoint(0), env.Launched, nil
	}
	switch {
	case env.Mixed:
		ep, err = joinMixed(ctx, env)
	case env.Transport == "shm":
		ep, err = joinShared(ctx, env)
	default:
		ep, err = joinTCP(ctx, env)
	}
	return ep, true, err
}

// joinShared joins a job whose processes share memory.
func joinShared(ctx context.Context, env JobEnv) (transport.Endpoint, error) {
	local, memory, err := mapMemory(env)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w, or --transport tcp", env.Rank, err)
	}
	launcher, err := dial(ctx, env, joinMessage{Memory: memory})
	if err != nil {
		local.Close()
		return nil, err
	}
	return attach(env, local, local, launcher), nil
}

// joinTCP joins a job whose processes exchange messages over TCP.
func joinTCP(ctx context.Context, env JobEnv) (transport.Endpoint, error) {
	remote, launcher, err := dialTCP(ctx, env, joinMessage{})
	if err != nil {
		return nil, err
	}
	return attach(env, remote, nil, launcher), nil
}

// joinMixed joins a job in which the processes of a host share memory and tcp
// connects the hosts. A process that cannot map the memory uses TCP alone.
func joinMixed(ctx context.Context, env JobEnv) (transport.Endpoint, error) {
	local, memory, err := mapMemory(env)
	if err != nil {
		remote, launcher, err := dialTCP(ctx, env, joinMessage{FallbackReason: err.Error()})
		if err != nil {
			return nil, err
		}
		return attach(env, remote, nil, launcher), nil
	}
	remote, launcher, err := dialTCP(ctx, env, joinMessage{Memory: memory})
	if err != nil {
		local.Close()
		return nil, err
	}
	return attach(env, mixed.New(local, remote, func(ctx context.Context, rank int) (bool, error) {
		theirs, err := launcher.memoryOf(ctx, rank)
		return theirs == memory, err
	}), local, launcher), nil
}

// mapMemory returns the endpoint for the ranks that share memory, and the name of
// that memory.
func mapMemory(env JobEnv) (ep *shm.Endpoint, name string, err error) {
	bytes, err := shm.MemoryLen(env.Size)
	if err != nil {
		return nil, "", err
	}
	file, name, err := inherited(env.Memory, bytes)
	if err != nil {
		return nil, "", fmt.Errorf("the job's memory: %w: want every process on the way from the launcher to pass it on", err)
	}
	defer file.Close()
	if host, ok := os.LookupEnv(envHost); ok {
		name = host + " " + name
	}
	ep, err = shm.New(shm.Config{Rank: env.Rank, Size: env.Size, Job: env.Secret.Job(), Memory: file, Linger: env.Linger})
	return ep, name, err
}

// dialTCP joins the job, and returns the endpoint for the ranks that exchange
// messages over TCP.
func dialTCP(ctx context.Context, env JobEnv, join joinMessage) (*tcp.Endpoint, *client, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("rank %d: listening for the other ranks: %w", env.Rank, err)
	}
	join.Address = listener.Addr().String()
	launcher, err := dial(ctx, env, join)
	if err != nil {
		listener.Close()
		return nil, nil, err
	}
	ep, err := tcp.New(tcp.Config{
		Rank: env.Rank, Size: env.Size, Secret: env.Secret,
		Listener: listener, Lookup: launcher.lookup, Linger: env.Linger,
	})
	if err != nil {
		launcher.close()
		listener.Close()
		return nil, nil, err
	}
	return ep, launcher, nil
}

// attach connects an endpoint to the launcher. Shared is the part of the endpoint
// that uses shared memory, or nil.
func attach(env JobEnv, ep transport.ProcessEndpoint, shared *shm.Endpoint, launcher *client) *attached {
	a := &attached{ProcessEndpoint: ep, shared: shared, launcher: launcher, done: make(chan struct{})}
	go a.receive()
	if env.Stall > 0 {
		go a.reportStalls(env.Stall)
	}
	return a
}

// An attached endpoint reports failed peers and stalls to the launcher, and learns from
// it which ranks are lost.
type attached struct {
	transport.ProcessEndpoint
	shared   *shm.Endpoint // nil without shared memory
	launcher *client
	failed   atomic.Pointer[error] // of an Exchange: why this rank gave up
	done     chan struct{}         // closed when receive has returned
	closing  sync.Once
	closed   error // the result of Close
}

// receive handles the launcher's messages. If the launcher is gone, it ends the
// process.
func (a *attached) receive() {
	defer close(a.done)
	if a.launcher.receive(a.Lost) {
		return
	}
	fmt.Fprintf(os.Stderr, "chorale: rank %d: the launcher is gone, so this rank ends\n", a.Rank())
	os.Exit(1)
}

// reportStalls tells the launcher what has been waiting here for long.
func (a *attached) reportStalls(patience time.Duration) {
	var watch stallWatch
	looks(a.done, patience, func() {
		if stalls, ok := watch.look(a.Stalls()); ok {
			out := writeStalls(stalls)
			_ = a.launcher.send(message{Stalls: &out}) // if the launcher is gone, this process ends anyway
		}
	})
}

func (a *attached) Exchange(ctx context.Context, step transport.Step) error {
	err := a.report(a.ProcessEndpoint.Exchange(ctx, step))
	if err != nil {
		a.noteFailure(err)
	}
	return err
}

// noteFailure is separate from Exchange so that its error does not escape there.
func (a *attached) noteFailure(err error) { a.failed.CompareAndSwap(nil, &err) }

func (a *attached) Send(ctx context.Context, to int, match transport.Match, kind string, data []byte) error {
	return a.report(a.ProcessEndpoint.Send(ctx, to, match, kind, data))
}

func (a *attached) Recv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	info, err := a.ProcessEndpoint.Recv(ctx, from, match, kind, into)
	return info, a.report(err)
}

func (a *attached) TryRecv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, bool, error) {
	info, found, err := a.ProcessEndpoint.TryRecv(ctx, from, match, kind, into)
	return info, found, a.report(err)
}

func (a *attached) Probe(ctx context.Context, from int, match transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	info, found, err := a.ProcessEndpoint.Probe(ctx, from, match, wait)
	return info, found, a.report(err)
}

// report reports an error's failed peer to the launcher, and returns the error.
func (a *attached) report(err error) error {
	if err != nil {
		a.reportPeer(err)
	}
	return err
}

// reportPeer is separate from report so that errors.As's target does not escape
// on success.
func (a *attached) reportPeer(err error) {
	var peer *transport.PeerError
	if errors.As(err, &peer) {
		a.launcher.reportFailure(peer.Peer)
	}
}

func (a *attached) Close() error {
	a.closing.Do(func() {
		if a.shared != nil && a.shared.CMADenied() {
			_ = a.launcher.send(message{CMADenied: true}) // for chorale run -v alone; if the launcher is gone, this process ends anyway
		}
		if failed := a.failed.Load(); failed != nil {
			reason := (*failed).Error()
			_ = a.launcher.send(message{Abort: reason[:min(len(reason), maxReason)]}) // as above
		}
		a.launcher.leave(a.Rank())
		a.closed = a.ProcessEndpoint.Close()
		a.launcher.close()
		<-a.done
	})
	return a.closed
}
