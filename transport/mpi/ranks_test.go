//go:build mpi

package mpi

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
)

// The contract suite has the endpoints of all ranks in one process. Here each rank is a
// process that the MPI launcher has started; its endpoint in the process of the tests
// stands for the one over there, and has the calls done there.

// ranksMax is how many processes there are. A job has the first of them.
const ranksMax = 8

// socketVar names the socket of the tests in a process that is a rank.
const socketVar = "CHORALE_MPI_TEST_SOCKET"

// A connection carries orders and replies.
type connection struct {
	net.Conn
	in      *gob.Decoder
	sending sync.Mutex
	out     *gob.Encoder
}

func newConnection(c net.Conn) *connection {
	return &connection{Conn: c, in: gob.NewDecoder(c), out: gob.NewEncoder(c)}
}

func (c *connection) send(v any) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.out.Encode(v)
}

// Ranks are the processes of the tests, by rank.
type ranks struct {
	launcher *exec.Cmd
	output   bytes.Buffer
	conns    []*remote
	jobs     atomic.Int32
	err      error
}

// A remote is a process of the tests.
type remote struct {
	*connection
	mu      sync.Mutex
	last    uint64
	replies map[uint64]chan reply
}

// launchRanks starts the ranks, once.
var launchRanks = sync.OnceValue(func() *ranks {
	r := &ranks{conns: make([]*remote, ranksMax)}
	r.err = r.launch()
	return r
})

func (r *ranks) launch() error {
	dir, err := os.MkdirTemp("", "mpi")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer l.Close()
	r.launcher = mpiexec(ranksMax, os.Args[0])
	r.launcher.Env = append(r.launcher.Env, socketVar+"="+socket)
	r.launcher.Stdout, r.launcher.Stderr = &r.output, &r.output
	if err := r.launcher.Start(); err != nil {
		return err
	}
	l.(*net.UnixListener).SetDeadline(time.Now().Add(time.Minute))
	for range ranksMax {
		conn, err := l.Accept()
		if err != nil {
			r.launcher.Process.Kill()
			r.launcher.Wait()
			return fmt.Errorf("%w\n%s", err, &r.output)
		}
		c := newConnection(conn)
		var rank int
		if err := c.in.Decode(&rank); err != nil {
			return err
		}
		r.conns[rank] = &remote{connection: c, replies: map[uint64]chan reply{}}
		go r.conns[rank].receive()
	}
	return nil
}

// mpiexec is the command that starts n ranks of a program, and kills them after a while.
func mpiexec(n int, program ...string) *exec.Cmd {
	args := append([]string{"-k", "5", "390"}, launcher...)
	args = append(append(args, "-n", strconv.Itoa(n)), program...)
	cmd := exec.Command("timeout", args...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return cmd
}

// requireMPI skips the test where the launcher of the library is not installed.
func requireMPI(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(launcher[0]); err != nil {
		testenv.Skip(t, "%s is not installed", launcher[0])
	}
}

// receive hands replies to the calls that wait for them.
func (r *remote) receive() {
	for {
		var m reply
		if err := r.in.Decode(&m); err != nil {
			return
		}
		r.mu.Lock()
		c := r.replies[m.Number]
		r.mu.Unlock()
		c <- m
	}
}

// A proxy is an endpoint that has its calls done by a rank. It implements
// [transport.ProcessEndpoint].
type proxy struct {
	transport.PrivateMemory // of this process
	*remote
	job, rank, size int
}

func (p *proxy) Rank() int { return p.rank }
func (p *proxy) Size() int { return p.size }

// call has an order done. Combine does the combines of a step.
func (p *proxy) call(ctx context.Context, o order, combine func(m *reply)) reply {
	p.mu.Lock()
	p.last++
	o.Number, o.Job = p.last, p.job
	replies := make(chan reply, 8)
	p.replies[o.Number] = replies
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.replies, o.Number)
		p.mu.Unlock()
	}()
	ended := ctx.Done()
	if ctx.Err() != nil {
		o.Ended, ended = errorToWire(transport.Cause(ctx)), nil
	}
	if err := p.send(o); err != nil {
		return reply{Err: errorToWire(err)}
	}
	for {
		select {
		case <-ended:
			ended = nil
			p.send(order{Number: o.Number, Call: "end", Ended: errorToWire(transport.Cause(ctx))})
		case m := <-replies:
			switch m.Event {
			case "waits":
				defer context.AfterFunc(ctx, func() {})()
			case "combine", "started":
				combine(&m)
			case "panic":
				panic(m.Err.error())
			default:
				return m
			}
		}
	}
}

func (p *proxy) Exchange(ctx context.Context, step transport.Step) error {
	w, regions := toWire(&step)
	m := p.call(ctx, order{Call: "exchange", Step: w}, func(m *reply) {
		answer := order{Number: m.Number, Call: "combined", Reason: "it panicked"}
		defer func() {
			if answer.Reason != "" {
				recover() // the rank panics instead, and its Exchange
			}
			p.send(answer)
		}()
		into := m.Into
		if m.HeldBytes == nil {
			m.HeldBytes = into
		}
		step.Recvs[m.Recv].Combine(into, m.HeldBytes, m.Incoming)
		answer.Data, answer.Reason = into, ""
	})
	for _, r := range w.Recvs { // other memory belongs to other ranks, too
		if m.Err == nil {
			copy(r.Into.of(regions), r.Into.of(m.Memory))
		}
	}
	return m.Err.error()
}

func (p *proxy) Send(ctx context.Context, to int, m transport.Match, typeName string, data []byte) error {
	return p.call(ctx, order{Call: "send", Rank: to, Match: m, Type: typeName, Data: data}, nil).Err.error()
}

func (p *proxy) Recv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, error) {
	r := p.call(ctx, order{Call: "recv", Rank: from, Match: m, Type: typeName, N: len(into)}, nil)
	copy(into, r.Data)
	return r.Info, r.Err.error()
}

// A proxyRequest is a request of a rank: the rank waits for it.
type proxyRequest struct {
	done   chan struct{}
	cancel context.CancelCauseFunc
	why    error // it was canceled
}

// start has a request started, and returns when it is.
func (p *proxy) start(ctx context.Context, r *transport.Request, o order, into []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	q := &proxyRequest{done: make(chan struct{}), cancel: cancel}
	r.Owner = q
	started := make(chan struct{})
	go func() {
		defer cancel(nil)
		defer close(q.done)
		m := p.call(ctx, o, func(*reply) { close(started) })
		copy(into, m.Data)
		err := m.Err.error()
		if err != nil && q.why != nil {
			err = q.why
		}
		r.Finish(m.Info, err)
	}()
	select {
	case <-started:
	case <-q.done:
	}
}

func (p *proxy) StartSend(ctx context.Context, r *transport.Request, to int, m transport.Match, typeName string, data []byte) {
	p.start(ctx, r, order{Call: "startsend", Rank: to, Match: m, Type: typeName, Data: data}, nil)
}

func (p *proxy) StartRecv(ctx context.Context, r *transport.Request, from int, m transport.Match, typeName string, into []byte) {
	p.start(ctx, r, order{Call: "startrecv", Rank: from, Match: m, Type: typeName, N: len(into)}, into)
}

func (p *proxy) Wait(r *transport.Request) {
	if q, ok := r.Owner.(*proxyRequest); ok {
		<-q.done
	}
}

func (p *proxy) Cancel(r *transport.Request, err error) {
	if q, ok := r.Owner.(*proxyRequest); ok && !r.Done() {
		q.why = err
		q.cancel(err)
		<-q.done
	}
}

func (p *proxy) Progress() { p.plain(order{Call: "progress"}) }

func (p *proxy) TryRecv(ctx context.Context, from int, m transport.Match, typeName string, into []byte) (transport.MessageInfo, bool, error) {
	r := p.call(ctx, order{Call: "tryrecv", Rank: from, Match: m, Type: typeName, N: len(into)}, nil)
	copy(into, r.Data)
	return r.Info, r.Found, r.Err.error()
}

func (p *proxy) Probe(ctx context.Context, from int, m transport.Match, wait bool) (transport.MessageInfo, bool, error) {
	r := p.call(ctx, order{Call: "probe", Rank: from, Match: m, Wait: wait}, nil)
	return r.Info, r.Found, r.Err.error()
}

// plain has an order done that has no context.
func (p *proxy) plain(o order) reply { return p.call(context.Background(), o, nil) }

func (p *proxy) Release(context uint32) {
	p.plain(order{Call: "release", Match: transport.Match{Context: context}})
}
func (p *proxy) CheckUnreceived() error    { return p.plain(order{Call: "unreceived"}).Err.error() }
func (p *proxy) Stalls() []transport.Stall { return p.plain(order{Call: "stalls"}).Stalls }
func (p *proxy) Held() transport.Held {
	h := p.plain(order{Call: "held"}).Held
	h.Allocated = p.Allocated()
	return h
}
func (p *proxy) Close() error {
	p.EndAlloc()
	return p.plain(order{Call: "close"}).Err.error()
}
func (p *proxy) Abort(why error) { p.plain(order{Call: "abort", Ended: errorToWire(why)}) }
func (p *proxy) SetMembers(communicator uint32, ranks []int) {
	p.plain(order{Call: "members", Match: transport.Match{Context: communicator}, Ranks: ranks})
}
func (p *proxy) Revoke(communicator uint32, why error) {
	p.plain(order{Call: "revoke", Match: transport.Match{Context: communicator}, Ended: errorToWire(why)})
}
func (p *proxy) Revoked(communicator uint32) error {
	return p.plain(order{Call: "revoked", Match: transport.Match{Context: communicator}}).Err.error()
}
func (p *proxy) Lost(rank int, reason string) {
	p.plain(order{Call: "lost", Rank: rank, Reason: reason})
}

// open starts a job of the first n ranks that ends with the test. They linger for a time, 0
// for the default.
func open(t *testing.T, n int, linger time.Duration) []*proxy {
	t.Helper()
	r := launchRanks()
	if r.err != nil {
		t.Fatal(r.err)
	}
	job := int(r.jobs.Add(1))
	all := make([]*proxy, n)
	each := func(o order) {
		var done sync.WaitGroup
		for rank := range all {
			done.Go(func() {
				if err := all[rank].plain(o).Err.error(); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		done.Wait()
	}
	for rank := range all {
		all[rank] = &proxy{remote: r.conns[rank], job: job, rank: rank, size: n}
	}
	t.Cleanup(func() { each(order{Call: "forget"}) })
	each(order{Call: "open", N: n, Data: []byte(linger.String())})
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// A server is a rank: it does what the process of the tests orders.
type server struct {
	*connection
	world    *world
	mu       sync.Mutex
	jobs     map[int]*serverJob
	contexts map[uint64]*remoteContext
	answers  map[uint64]chan order
}

// A serverJob is a job of a rank.
type serverJob struct {
	*Endpoint
	stop    context.CancelFunc // ends the draining
	drained sync.WaitGroup
}

// serve is a process that is a rank. It does not return before the tests end.
func serve(socket string) error {
	w, err := start()
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	s := &server{connection: newConnection(conn), world: w, jobs: map[int]*serverJob{}, contexts: map[uint64]*remoteContext{}, answers: map[uint64]chan order{}}
	if err := s.send(w.rank); err != nil {
		return err
	}
	for {
		var o order
		if s.in.Decode(&o) != nil {
			return nil
		}
		s.mu.Lock()
		switch o.Call {
		case "end":
			if c := s.contexts[o.Number]; c != nil {
				c.end(o.Ended)
			}
		case "combined":
			s.answers[o.Number] <- o
		default:
			c := newRemoteContext(sync.OnceFunc(func() { s.send(reply{Number: o.Number, Event: "waits"}) }))
			if o.Ended != nil {
				c.end(o.Ended)
			}
			s.contexts[o.Number] = c
			s.answers[o.Number] = make(chan order, 1)
			go s.do(c, o)
		}
		s.mu.Unlock()
	}
}

// do does an order, and replies.
func (s *server) do(ctx *remoteContext, o order) {
	m := reply{Number: o.Number}
	defer func() {
		if p := recover(); p != nil {
			m.Event, m.Err = "panic", &wireError{Text: fmt.Sprint(p)}
		}
		s.mu.Lock()
		delete(s.contexts, o.Number)
		delete(s.answers, o.Number)
		s.mu.Unlock()
		s.send(m)
	}()
	if o.Call == "open" {
		m.Err = errorToWire(s.open(o))
		return
	}
	var err error
	s.mu.Lock()
	e := s.jobs[o.Job]
	s.mu.Unlock()
	switch o.Call {
	case "forget":
		e.stop()
		e.drained.Wait()
	case "exchange":
		step := o.Step.fromWire(func(recv int, into, held, incoming []byte) {
			s.combine(o.Number, recv, into, held, incoming)
		})
		err = e.Exchange(ctx, step)
		m.Memory = o.Step.Memory
	case "send":
		err = e.Send(ctx, o.Rank, o.Match, o.Type, o.Data)
	case "recv":
		m.Data = make([]byte, o.N)
		m.Info, err = e.Recv(ctx, o.Rank, o.Match, o.Type, m.Data)
	case "startsend", "startrecv":
		var r transport.Request
		if o.Call == "startsend" {
			e.StartSend(ctx, &r, o.Rank, o.Match, o.Type, o.Data)
		} else {
			m.Data = make([]byte, o.N)
			e.StartRecv(ctx, &r, o.Rank, o.Match, o.Type, m.Data)
		}
		s.send(reply{Number: o.Number, Event: "started"})
		e.Wait(&r)
		m.Info, err = r.Info, r.Err
	case "progress":
		e.Progress()
	case "tryrecv":
		m.Data = make([]byte, o.N)
		m.Info, m.Found, err = e.TryRecv(ctx, o.Rank, o.Match, o.Type, m.Data)
	case "probe":
		m.Info, m.Found, err = e.Probe(ctx, o.Rank, o.Match, o.Wait)
	case "release":
		e.Release(o.Match.Context)
	case "unreceived":
		err = e.CheckUnreceived()
	case "held":
		m.Held = e.Held()
	case "stalls":
		m.Stalls = e.Stalls()
	case "abort":
		e.Abort(o.Ended.error())
	case "members":
		e.SetMembers(o.Match.Context, o.Ranks)
	case "revoke":
		e.Revoke(o.Match.Context, o.Ended.error())
	case "revoked":
		err = e.Revoked(o.Match.Context)
	case "lost":
		e.Lost(o.Rank, o.Reason)
	case "close":
		err = e.Close()
	}
	m.Err = errorToWire(err)
}

// combine has the process of the tests combine.
func (s *server) combine(number uint64, recv int, into, held, incoming []byte) {
	s.mu.Lock()
	answers := s.answers[number]
	s.mu.Unlock()
	m := reply{Number: number, Event: "combine", Recv: recv, Into: into, HeldBytes: held, Incoming: incoming}
	if len(into) > 0 && &into[0] == &held[0] {
		m.HeldBytes = nil
	}
	s.send(m)
	a := <-answers
	if a.Reason != "" {
		panic(a.Reason)
	}
	copy(into, a.Data)
}

// open makes an endpoint. An orderly Close returns at once here: MPI does not end, and what
// still comes is taken until the test ends.
func (s *server) open(o order) error {
	linger, err := time.ParseDuration(string(o.Data))
	if err != nil {
		return err
	}
	j := new(serverJob)
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	s.mu.Lock()
	s.jobs[o.Job] = j
	s.mu.Unlock()
	j.Endpoint, err = s.world.open(Config{Linger: linger}, o.N, func(e *Endpoint, peace bool) error {
		j.drained.Go(func() {
			if _, err := e.finish(ctx, peace); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
		return nil
	})
	return err
}
