package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/internal/logging"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/shm"
)

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
	l.Info("joined", "rank", env.Rank, "size", env.Size, "transport", env.Transport, "respawned", env.Respawned)
	if reason := a.self.FallbackReason; reason != "" {
		l.Warn("shares no memory with ranks of its host, and reaches them over TCP", "rank", env.Rank, "reason", reason)
	}
}

// logDenied logs, when the process leaves, what the system has kept from being fast.
func (a *attached) logDenied() {
	if a.shared == nil {
		return
	}
	l := logging.Logger()
	if a.shared.CMADenied() {
		l.Warn("may not read the memory of other ranks: long messages were copied twice", "rank", a.Rank())
		a.launcher.ReportCMADenied() // for chorale run -v alone
	}
	if reason := a.shared.HugePagesDenied(); reason != nil {
		l.Warn("memory of long messages was left in small pages, from which they are copied more slowly", "rank", a.Rank(), "reason", reason)
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

// Eager returns what sends and receives short messages, for [transport.EagerOf].
func (a *attached) Eager() transport.EagerMessenger {
	if a.shared == nil || a.ProcessEndpoint != transport.ProcessEndpoint(a.shared) {
		return nil
	}
	return &eager{a.shared, a}
}

// An eager is shared memory as an attached endpoint has it. What is sent or received at once
// has not failed.
type eager struct {
	*shm.Endpoint
	attached *attached
}

func (e *eager) StartRecvEager(ctx context.Context, r *transport.Request, from int, match transport.Match, kind string, into []byte) (transport.Received, bool) {
	got, ok := e.Endpoint.StartRecvEager(ctx, r, from, match, kind, into)
	if !ok {
		e.attached.reportRequest(r)
	}
	return got, ok
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
		a.logDenied()
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
