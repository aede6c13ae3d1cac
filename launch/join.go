package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/internal/logging"
	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/join"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/mixed"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// Join returns this process's endpoint in the job in which a launcher started it, and
// what it knows of that job. A process that no launcher started gets the endpoint of the
// only rank of a job. A process joins once.
//
// Join fails if the environment is inconsistent, if the job runs its ranks as
// goroutines, or if the launcher cannot be reached or refuses the rank. In a job of
// chorale run, it returns without waiting for the other ranks; under other launchers it
// waits until all ranks have joined, 5 minutes at most, and over MPI until MPI lets it go on. If ctx ends before, Join fails
// with its cause. A process that was started in the place of a lost rank ([Config.Respawn])
// waits until others regroup with it, and gets the endpoint of that [Regroup]; if the job ends
// before, the process exits with status 0.
//
// If the launcher dies before the endpoint is closed, the process exits with
// status 1, whatever it is doing: a job does not outlive its launcher. Under other
// launchers, rank 0 takes that part: its Close waits until all ranks have left. There, the
// process exits also if another rank is lost or gives up, 5 s later: no launcher may end
// it, and a process that computes makes no call that fails.
func Join(ctx context.Context) (transport.Endpoint, JobEnv, error) {
	env, err := Environment()
	if err == nil && ctx == nil {
		err = errNoContext
	}
	if err != nil {
		return nil, env, err
	}
	if env.Transport == "inproc" {
		if env.Size > 1 {
			return nil, env, fmt.Errorf("the %d ranks of this job are goroutines of one process: use chorale.Main, or another transport than inproc", env.Size)
		}
		return inproc.New(1).Endpoint(0), env, nil
	}
	if env.Transport == "mpi" {
		return joinMPI(env)
	}
	if env.Respawned {
		return joinAsNewcomer(ctx, env)
	}
	var c *coordinator
	if env.Foreign != nil {
		if env, c, err = coordinate(ctx, env); err != nil {
			return nil, env, err
		}
	}
	a, env, err := attach(ctx, env)
	if err != nil {
		if env.rendezvous() != nil && env.Foreign.Place.Launcher == join.Slurm {
			err = fmt.Errorf("%w: srun --mpi=pmi2 needs no addresses of nodes; or set CHORALE_RENDEZVOUS to rank 0's, with a port", err)
		}
		if c != nil {
			c.abort(env.Rank, err)
		}
		return nil, env, err
	}
	if c != nil {
		c.removeSecret()
	}
	if c == nil {
		env.Regroup = a.regroupOf(env)
	}
	a.begin(env, c)
	a.logJoined(env)
	return a, env, nil
}

// attach joins the job over the transports of its environment. Where that is auto, the
// processes of a host share memory and tcp connects the hosts; a process that cannot map
// the memory uses TCP alone.
func attach(ctx context.Context, env JobEnv) (_ *attached, _ JobEnv, err error) {
	a := &attached{rank: env.jobRank(), done: make(chan struct{}), gaveUp: make(chan struct{})}
	var offer *memoryOffer
	if env.Transport == "shm" {
		a.shared, offer, a.self.Memory, err = mapMemory(env)
		switch {
		case err == nil:
		case env.Mixed:
			a.self.FallbackReason = err.Error()
		default:
			return nil, env, fmt.Errorf("rank %d: %w, or --transport tcp", env.Rank, err)
		}
	}
	if offer != nil {
		defer offer.close() // when all ranks have joined, those of this host have the memory
	}
	defer func() {
		if err != nil && a.shared != nil {
			a.shared.Close()
		}
	}()
	if env.Foreign != nil {
		a.self.Host, a.self.Processors = hostName(), processors.Available()
		if err := env.findSelections(os.Getenv(machine.Variable)); err != nil {
			return nil, env, fmt.Errorf("rank %d: %w", env.Rank, err)
		}
		a.self.Selections = machine.Digest(env.Selections)
	}
	if a.shared != nil && !env.Mixed {
		a.ProcessEndpoint = a.shared
		env, err = a.enter(ctx, env, func(netip.Addr) (control.JoinMessage, error) { return a.self, nil })
		return a, env, err
	}
	remote, env, err := a.dialTCP(ctx, env)
	if err != nil {
		return nil, env, err
	}
	a.ProcessEndpoint = remote
	if a.shared != nil {
		a.ProcessEndpoint = mixed.New(a.shared, remote, func(ctx context.Context, rank int) (bool, error) {
			theirs, err := a.launcher.MemoryOf(ctx, rank)
			return theirs == a.self.Memory, err
		})
	}
	return a, env, nil
}

// enter joins the job at its control server, and notes what that knows of the job.
func (a *attached) enter(ctx context.Context, env JobEnv, self func(local netip.Addr) (control.JoinMessage, error)) (JobEnv, error) {
	cfg, err := env.dialConfig()
	if err != nil {
		return env, err
	}
	launcher, joined, err := control.Dial(ctx, cfg, self)
	if err != nil {
		return env, err
	}
	a.launcher = launcher
	if joined.Errors {
		env.ReportError, env.ReportMetrics = launcher.ReportError, launcher.ReportMetrics
		env.ReportProfile, env.ReportTrace = launcher.ReportProfile, launcher.ReportTrace
	}
	env.HostName = hostName()
	env.CompareClocks = func() (clock.Offset, error) { return launcher.CompareClocks(env.HostName) }
	if joined.Processors > 0 {
		env.Processors = joined.Processors
	}
	if len(joined.Hosts) == env.Size {
		env.Hosts = joined.Hosts
	}
	env.takeSelections(joined)
	return env, nil
}

// dialTCP joins the job, and returns the endpoint for the ranks that exchange messages
// over TCP.
func (a *attached) dialTCP(ctx context.Context, env JobEnv) (*tcp.Endpoint, JobEnv, error) {
	var listener net.Listener
	env, err := a.enter(ctx, env, func(local netip.Addr) (_ control.JoinMessage, err error) {
		if listener == nil {
			if listener, a.self.Address, err = listenForPeers(env, local); err != nil {
				return a.self, fmt.Errorf("listening for the other ranks: %w", err)
			}
		}
		return a.self, nil
	})
	if err != nil {
		if listener != nil {
			listener.Close()
		}
		return nil, env, err
	}
	ep, err := tcp.New(tcp.Config{
		Rank: env.Rank, Size: env.Size, Secret: env.Secret,
		Listener: listener, Lookup: a.launcher.Lookup, Linger: env.Linger,
		Encrypt: env.Encrypt && env.leavesHost(), Local: env.local(),
	})
	if err != nil {
		a.launcher.Close()
		listener.Close()
		return nil, env, err
	}
	return ep, env, nil
}

// local returns the number of ranks of this host, or 0 where all share one.
func (e JobEnv) local() (n int) {
	if e.Hosts == nil {
		return 0
	}
	for _, host := range e.Hosts {
		if host == e.Hosts[e.Rank] {
			n++
		}
	}
	return n
}

// mapMemory returns the endpoint for the ranks that share memory, and the name of that
// memory: what chorale run has made for its first ranks, or what the ranks of this host
// find. Offer is what the other ranks find it by.
func mapMemory(env JobEnv) (ep *shm.Endpoint, offer *memoryOffer, name string, err error) {
	inherits := env.Foreign == nil && env.Group == 0
	if env.Memory == 0 && inherits {
		return nil, nil, "", errors.New("the launcher has made no memory on this host")
	}
	bytes, err := shm.MemoryLen(env.Size)
	if err != nil {
		return nil, nil, "", err
	}
	var file *os.File
	if inherits {
		if file, err = inherited(env.Memory, bytes); err != nil {
			err = fmt.Errorf("%w: want every process on the way from the launcher to pass it on", err)
		}
	} else {
		file, offer, err = findMemory(env)
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("the job's memory: %w", err)
	}
	if offer == nil { // which passes the file on
		defer file.Close()
	}
	if name, err = memoryName(file); err == nil {
		ep, err = shm.New(shm.Config{Rank: env.Rank, Size: env.Size, Job: env.Secret.Job(), Memory: file, Linger: env.Linger})
	}
	if err != nil {
		if offer != nil {
			offer.close()
		}
		return nil, nil, "", err
	}
	return ep, offer, name, nil
}

// An attached endpoint reports failed peers and stalls to the launcher, and learns from
// it which ranks are lost.
type attached struct {
	transport.ProcessEndpoint
	rank     int           // of the job
	shared   *shm.Endpoint // nil without shared memory
	launcher *control.Client
	self     control.JoinMessage   // what the other ranks learn of this one
	others   *coordinator          // nil in a job of chorale run
	failed   atomic.Pointer[error] // of an Exchange: why this rank gave up
	gaveUp   chan struct{}         // closed when failed is set
	done     chan struct{}         // closed when receive has returned
	over     string                // why the job is over, for receive and what it calls; "" while it is not
	closing  sync.Once
	closed   error // the result of Close
}

// logJoined logs that the process has joined, and why it shares no memory if it does not.
func (a *attached) logJoined(env JobEnv) {
	l := logging.Logger()
	l.Info("joined", "rank", env.Rank, "size", env.Size, "transport", env.Transport)
	if reason := a.self.FallbackReason; reason != "" {
		l.Warn("shares no memory with ranks of its host, and reaches them over TCP", "rank", env.Rank, "reason", reason)
	}
}

// begin begins to listen to the launcher, and to report stalls.
func (a *attached) begin(env JobEnv, c *coordinator) {
	a.others = c
	a.launcher.Look = func() stall.Rank { return stall.Look([]transport.Endpoint{a.ProcessEndpoint}, nil)[0] }
	go a.receive()
	if env.Stall > 0 {
		go a.reportStalls(env.Stall)
	}
	if c != nil && c.session != nil {
		go a.watchSession()
	}
}

// receive handles the launcher's messages. If the launcher is gone, it ends the
// process.
func (a *attached) receive() {
	defer close(a.done)
	if a.launcher.Receive(a.rankLost, a.rankGaveUp) {
		return
	}
	switch {
	case a.over != "":
		a.exit(a.over)
	case a.others != nil:
		a.exit("rank 0 is gone")
	default:
		a.exit("the launcher is gone")
	}
}

// exit ends the process, since the job is over.
func (a *attached) exit(why string) {
	fmt.Fprintf(os.Stderr, "chorale: rank %d: %s, so this rank ends\n", a.rank, why)
	os.Exit(1)
}

func (a *attached) rankLost(rank int, reason string) {
	logging.Logger().Warn("peer lost", "rank", a.Rank(), "peer", rank, "reason", reason)
	a.Lost(rank, reason)
	a.endSoon(fmt.Sprintf("rank %d is lost: %s", rank, reason))
}

func (a *attached) rankGaveUp(rank int, reason string) {
	a.endSoon(fmt.Sprintf("rank %d gave up: %s", rank, reason))
}

// endSoon ends the process control.EndTimeout from now, unless it has left the job by then. Of the
// foreign launchers, some end no rank because of another, and the rank itself may compute
// for a day before a call fails.
func (a *attached) endSoon(why string) {
	if a.others == nil || a.over != "" {
		return
	}
	a.over = why
	time.AfterFunc(control.EndTimeout, func() {
		select {
		case <-a.done: // this rank has left
		default:
			a.exit(why)
		}
	})
}

// watchSession ends the process when the foreign launcher is gone.
func (a *attached) watchSession() {
	select {
	case <-a.done: // this rank has left, or rank 0 is gone
	case <-a.others.session.Gone():
		a.exit("the launcher is gone")
	}
}

// reportStalls tells the launcher what has been waiting here for long.
func (a *attached) reportStalls(patience time.Duration) {
	var watch stall.Watch
	deadlock.Poll(a.done, patience, func() {
		if stalls, ok := watch.Look(a.Stalls()); ok {
			a.launcher.ReportStalls(stalls)
		}
	})
}

func (a *attached) Exchange(ctx context.Context, step transport.Step) error {
	err := a.report(a.ProcessEndpoint.Exchange(ctx, step))
	if err != nil && !failsAlone(ctx, err) {
		a.noteFailure(err)
	}
	return err
}

// failsAlone reports whether the error of a step is that of its communicator alone.
func failsAlone(ctx context.Context, err error) bool {
	var peer *transport.PeerError
	return ctx.Err() != nil || errors.As(err, &peer)
}

// Abort implements [transport.Endpoint].
func (a *attached) Abort(why error) {
	a.noteFailure(why)
	a.ProcessEndpoint.Abort(why)
}

// noteFailure is separate from Exchange so that its error does not escape there.
func (a *attached) noteFailure(err error) {
	if a.failed.CompareAndSwap(nil, &err) {
		close(a.gaveUp)
	}
}

func (a *attached) Send(ctx context.Context, to int, match transport.Match, kind string, data []byte) error {
	return a.report(a.ProcessEndpoint.Send(ctx, to, match, kind, data))
}

func (a *attached) Recv(ctx context.Context, from int, match transport.Match, kind string, into []byte) (transport.MessageInfo, error) {
	info, err := a.ProcessEndpoint.Recv(ctx, from, match, kind, into)
	return info, a.report(err)
}

func (a *attached) StartSend(ctx context.Context, r *transport.Request, to int, match transport.Match, kind string, data []byte) {
	a.ProcessEndpoint.StartSend(ctx, r, to, match, kind, data)
	a.reportRequest(r)
}

func (a *attached) StartRecv(ctx context.Context, r *transport.Request, from int, match transport.Match, kind string, into []byte) {
	a.ProcessEndpoint.StartRecv(ctx, r, from, match, kind, into)
	a.reportRequest(r)
}

func (a *attached) Wait(r *transport.Request) {
	a.ProcessEndpoint.Wait(r)
	a.reportRequest(r)
}

// reportRequest reports the failed peer of a request that is done.
func (a *attached) reportRequest(r *transport.Request) {
	if r.Done() {
		_ = a.report(r.Err)
	}
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
		a.launcher.ReportFailure(peer.Peer)
	}
}

func (a *attached) Close() error {
	a.closing.Do(func() {
		if a.shared != nil && a.shared.CMADenied() {
			logging.Logger().Warn("may not read the memory of other ranks: long messages were copied twice", "rank", a.Rank())
			a.launcher.ReportCMADenied() // for chorale run -v alone
		}
		if failed := a.failed.Load(); failed != nil {
			a.launcher.ReportAbort((*failed).Error())
		}
		a.launcher.Leave(a.Rank())
		a.closed = a.ProcessEndpoint.Close()
		a.launcher.Close()
		<-a.done
		if a.others != nil {
			a.others.leave(a.gaveUp)
		}
	})
	return a.closed
}
