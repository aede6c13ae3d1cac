//go:build mpi

package mpi

import (
	"runtime"
	"unsafe"
)

// A requestTable has the requests of MPI in progress, by their index.
type requestTable struct {
	requests [requestsMax]request
	free     []int // the indices that are not in use, the last one first
	sending  int   // requests that send
}

// A request is one of MPI that is in progress. It is one of these.
type request struct {
	out     outgoing       // a frame, or a piece of a message, to a peer
	piece   *piece         // a piece of a message from a peer
	arrival *arrival       // a frame from a peer
	pinner  runtime.Pinner // of memory that is not this package's
	pinned  bool
}

func (t *requestTable) init() {
	for i := requestsMax - 1; i >= 0; i-- {
		t.free = append(t.free, i)
	}
}

// take returns a free index. There is one.
func (t *requestTable) take() int {
	n := len(t.free) - 1
	index := t.free[n]
	t.free = t.free[:n]
	return index
}

// release frees an index.
func (t *requestTable) release(index int) {
	r := &t.requests[index]
	if r.pinned {
		r.pinner.Unpin()
	}
	r.out, r.piece, r.arrival, r.pinned = outgoing{}, nil, nil, false
	t.free = append(t.free, index)
}

// pin has memory stay where it is until the request is over.
func (r *request) pin(b []byte) uintptr {
	p := unsafe.SliceData(b)
	r.pinner.Pin(p)
	r.pinned = true
	return uintptr(unsafe.Pointer(p))
}

// completed does what follows from the end of a request.
func (e *Endpoint) completed(index int) {
	r := &e.requests.requests[index]
	out, p, a := r.out, r.piece, r.arrival
	e.requests.release(index)
	switch {
	case out.link != nil:
		e.requests.sending--
		out.link.out.posted--
		out.sent()
	case p != nil:
		p.arrived()
	case a != nil:
		a.complete = true
	}
}

// transfers reports whether a transfer is under way that uses memory of an operation
// which has failed.
func (e *Endpoint) transfers() bool {
	failed := e.engine.Failed()
	for i := range e.requests.requests {
		r := &e.requests.requests[i]
		switch {
		case r.out.source != nil && (failed || r.out.link.err != nil) && !r.out.link.lost:
			return true
		case r.piece != nil && (failed || r.piece.pull.dropped) && !r.piece.pull.link.lost:
			return true
		}
	}
	for _, l := range e.backlog {
		if (failed || l.err != nil) && l.out.pieces() {
			return true
		}
	}
	return false
}

// awaitTransfers returns when no operation that has failed has a transfer under way.
// MPI cannot take back what both ends have begun. The lock is released meanwhile.
func (e *Endpoint) awaitTransfers() {
	if !e.doom && !e.engine.Failed() {
		return
	}
	for wait := backoff; e.transfers(); wait = min(2*wait, napMax) {
		if e.poll(1) != nil {
			return
		}
		e.engine.UnlockNow()
		pause(wait)
		e.engine.Lock()
	}
	e.doom = false
}
