package chorale

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
)

// A started is a message that was started. A [Request] has it until the message is done.
type started struct {
	request    transport.Request
	comm       *Comm
	waited     bool   // the endpoint's Wait has returned
	roundRobin bool   // a receive that has its turn
	peer, tag  int    // as the call names them
	size       int    // bytes of an element; 0: it is a send
	count      int    // elements that are sent, or have room
	kind       string // of the elements

	// Of a message with a Request:
	mu    sync.Mutex
	users int           // calls that wait for it, or look at it, without the lock
	done  chan struct{} // nil until Done is called

	requests []pendingRecv // for later receives
}

// startedMessages are those of a job that are done. Their memory is kept for others: many
// messages are in progress for a short time, and what was allocated for each would have to be
// collected.
type startedMessages struct {
	mu    sync.Mutex
	spare []*started
}

const startedMax = 256

// get returns a message to be started.
func (s *startedMessages) get() *started {
	s.mu.Lock()
	n := len(s.spare) - 1
	if n < 0 {
		s.mu.Unlock()
		return new(started)
	}
	m := s.spare[n]
	s.spare = s.spare[:n]
	s.mu.Unlock()
	return m
}

func (s *startedMessages) put(m *started) {
	s.mu.Lock()
	if len(s.spare) < startedMax {
		s.spare = append(s.spare, m)
	}
	s.mu.Unlock()
}

// await waits until the message is done.
func (m *started) await() { m.comm.job.endpoint.Wait(&m.request) }

// end ends a message that is done, and returns its error, and of a receive its status.
func (m *started) end() (s Status, err error) {
	call, count, direction := "recv", int64(-1), "from"
	if m.size == 0 {
		call, count, direction = "send", 1, "to"
	} else {
		s = statusOf(m.comm, &m.request.Info, m.size)
	}
	if m.request.Err != nil {
		count = 0
		err = m.comm.messageFailed(call, messageText(m.count, m.kind, direction, m.peer, m.tag), m.kind, m.size, m.request.Err)
		if m.roundRobin {
			m.comm.returnTurn(m.tag, m.peer)
		}
	}
	m.comm.endMessage(count)
	return s, err
}

// outcome ends a message that is done.
func (m *started) outcome() *outcome {
	switch s, err := m.end(); {
	case err != nil:
		return &outcome{s, err}
	case m.size == 0:
		return nil
	default:
		return &m.comm.received.request(s).outcome
	}
}

// recycle keeps a message that has ended, and that no Request refers to, for a later call.
func (m *started) recycle() {
	if !m.waited {
		m.await() // also if it is done: then Reset is allowed
	}
	m.request.Reset()
	all := &m.comm.job.started
	m.comm, m.waited, m.roundRobin, m.size, m.done = nil, false, false, 0, nil
	all.put(m)
}

// startSend is StartSend after beginMessage, and the check of the arguments.
func startSend[T any](ctx context.Context, c *Comm, m *started, src []T, to, tag int) {
	m.comm, m.peer, m.tag, m.count, m.kind = c, to, tag, len(src), typeName[T]()
	c.job.endpoint.StartSend(ctx, &m.request, c.jobRank(to), transport.Match{Context: c.context, Tag: tag}, m.kind, bytesOf(src))
}

// startRecv is the same for StartRecv. If it returns ok, the message is received, and m is not
// started.
func startRecv[T any](ctx context.Context, c *Comm, m *started, dst []T, from source, tag int) (got transport.Received, ok bool) {
	kind, rank, match, into := typeName[T](), c.endpointRank(from.rank), transport.Match{Context: c.context, Tag: tag}, bytesOf(dst)
	if e := c.job.eager; e == nil {
		c.job.endpoint.StartRecv(ctx, &m.request, rank, match, kind, into)
	} else if got, ok = e.StartRecvEager(ctx, &m.request, rank, match, kind, into); ok {
		return got, true
	}
	m.comm, m.peer, m.tag, m.count, m.kind = c, from.rank, tag, len(dst), kind
	m.roundRobin, m.size = from.roundRobin, elementSize[T]()
	return got, false
}

// StartSend is the nonblocking [Send]. It returns at once; the caller does not write
// src until the request is done. Messages arrive in the order in which they were
// started.
//
// Every request is waited for, or tested until it is done. When the rank leaves, those in
// progress fail with ErrClosed.
func StartSend[T any](ctx context.Context, c *Comm, src []T, to, tag int) *Request {
	if err := c.beginMessage("send"); err != nil {
		return doneRequest(err)
	}
	if err := checkMessage[T](ctx, c, "send", to, tag); err != nil {
		c.endMessage(0)
		return doneRequest(err)
	}
	if sendEager(ctx, c, src, to, tag) {
		return &succeeded
	}
	m := c.job.started.get()
	startSend(ctx, c, m, src, to, tag)
	if !m.request.Done() {
		r := new(Request)
		r.message.Store(m)
		return r
	}
	_, err := m.end()
	m.recycle()
	return doneRequest(err)
}

// A RecvRequest is a nonblocking receive, in progress or done.
type RecvRequest struct{ *Request }

// Status waits until the receive is done, and returns the status of its message.
func (r *RecvRequest) Status() Status {
	_ = r.Wait()
	if r.outcome == nil {
		return Status{}
	}
	return r.outcome.status
}

// StartRecv is the nonblocking [Recv]. It returns at once; the caller does not touch
// dst until the request is done. A message goes to the receive that was started first,
// of those that match it.
func StartRecv[T any](ctx context.Context, c *Comm, dst []T, from, tag int) *RecvRequest {
	if err := c.beginMessage("recv"); err != nil {
		return &RecvRequest{doneRequest(err)}
	}
	source, err := sourceOf[T](ctx, c, from, tag)
	if err != nil {
		c.endMessage(0)
		return &RecvRequest{doneRequest(err)}
	}
	m := c.job.started.get()
	if got, ok := startRecv(ctx, c, m, dst, source, tag); ok {
		c.endMessage(-1)
		c.job.started.put(m)
		return &c.received.request(receivedStatus[T](c, got)).RecvRequest
	}
	if m.request.Done() {
		o := m.outcome()
		m.recycle()
		return &RecvRequest{&Request{outcome: o}}
	}
	r := m.newRequest()
	r.request.message.Store(m)
	return &r.RecvRequest
}

// A pendingRecv is a request of a receive that is not done when it is started.
type pendingRecv struct {
	RecvRequest
	request Request
}

// newRequest returns a request for a receive. Several are allocated together.
func (m *started) newRequest() *pendingRecv {
	if len(m.requests) == 0 {
		m.requests = make([]pendingRecv, requestsTogether)
	}
	r := &m.requests[0]
	m.requests = m.requests[1:]
	r.Request = &r.request
	return r
}

const requestsTogether = 8

// receivedRequests are some requests of receives that have succeeded. They never change: a
// receive that is done when it is started has that of another one with the same status, and
// one that is done later its outcome.
type receivedRequests [8]atomic.Pointer[receivedRequest]

type receivedRequest struct {
	RecvRequest
	request Request
	outcome outcome
}

// request returns the request of a receive with a status.
func (l *receivedRequests) request(s Status) *receivedRequest {
	kept := &l[uint(s.From*3+s.Tag)%uint(len(l))]
	if r := kept.Load(); r != nil && r.outcome.status == s {
		return r
	}
	r := &receivedRequest{outcome: outcome{status: s}}
	r.Request, r.request.outcome = &r.request, &r.outcome
	kept.Store(r)
	return r
}
