//go:build mpi

package mpi

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/transport/internal/match"
)

// arrivalsMax is how many frames may be arriving at a time.
const arrivalsMax = 8

// An arrival is a frame that MPI has matched.
type arrival struct {
	buf      []byte
	n        int
	source   int
	complete bool
}

// An arrivalQueue has the frames that are arriving, in order.
type arrivalQueue struct {
	frames []*arrival
	spare  []*arrival
}

func (q *arrivalQueue) init() {
	for range arrivalsMax {
		q.spare = append(q.spare, &arrival{buf: allocate(frameMax)})
	}
}

// fault notes an error of MPI. The next poll fails the endpoint with it.
func (e *Endpoint) fault(err error) {
	if e.broken == nil {
		e.broken = err
	}
}

// poll takes what MPI has done. It looks some rounds at most for something.
func (e *Endpoint) poll(rounds int) error {
	var a *arrival
	index, buf := 0, []byte(nil)
	if n := len(e.arrivals.spare) - 1; n >= 0 && len(e.requests.free) > 0 {
		a, index = e.arrivals.spare[n], e.requests.take()
		buf = a.buf
	}
	err := e.broken
	if err == nil {
		err = e.comm.poll(rounds, e.yields, index, buf)
	}
	if err != nil {
		if a != nil {
			e.requests.release(index)
		}
		e.fault(err)
		e.engine.Fail(err)
		return err
	}
	source, n, found, complete := e.comm.arrived()
	switch {
	case found:
		e.arrivals.spare = e.arrivals.spare[:len(e.arrivals.spare)-1]
		a.source, a.n, a.complete = source, n, complete
		e.arrivals.frames = append(e.arrivals.frames, a)
		if complete {
			e.requests.release(index)
		} else {
			e.requests.requests[index].arrival = a
		}
	case a != nil:
		e.requests.release(index)
	}
	done := e.comm.done()
	e.progressed = found || len(done) > 0
	if !e.progressed {
		return nil
	}
	for _, index := range done {
		e.completed(int(index))
	}
	if len(done) > 0 {
		e.postBacklog()
	}
	e.takeArrived()
	e.settle()
	return e.broken
}

// pollOnce polls, and goes on as long as there is something, some times at most.
func (e *Endpoint) pollOnce(times int) {
	for range times {
		if e.poll(1) != nil || !e.progressed {
			return
		}
	}
}

// pollAll takes all that has come.
func (e *Endpoint) pollAll() { e.pollOnce(1 << 10) }

// takeArrived takes the frames that have arrived completely, and before which none of the
// same peer is arriving.
func (e *Endpoint) takeArrived() {
	q := &e.arrivals
	for i := 0; i < len(q.frames); {
		a := q.frames[i]
		if !a.complete || slices.ContainsFunc(q.frames[:i], func(b *arrival) bool { return b.source == a.source }) {
			i++
			continue
		}
		q.frames = slices.Delete(q.frames, i, i+1)
		e.take(a)
		q.spare = append(q.spare, a)
	}
}

// take takes a frame.
func (e *Endpoint) take(a *arrival) {
	l := e.link(a.source)
	l.in.frames++
	h, text, body, err := parse(a.buf[:a.n])
	if err == nil {
		l.in.heard = true
		err = l.handle(h, text, body)
	}
	if err != nil {
		l.lose("it sends " + err.Error())
	}
}

// handle does what a frame says. A rank whose part in the job has ended only has its
// transfers end.
func (l *link) handle(h header, text, body []byte) error {
	switch h.kind {
	case leftFrame, abortFrame, mismatchFrame:
		return l.handleNotice(h, text)
	case refuseFrame:
		l.e.pulls.cancel(l, func(q *piece) bool { return q.order == h.order })
		return nil
	}
	if l.e.engine.Failed() || l.err != nil {
		return nil
	}
	switch h.kind {
	case messageFrame, announceFrame:
		return l.handleMessage(h, text, body)
	case pullFrame, ctsFrame:
		return l.handleCTS(h)
	case discardFrame:
		if i := slices.IndexFunc(l.out.sources, func(s *source) bool { return s.tagged == nil && s.number == h.number }); i >= 0 {
			l.out.sources[i].finish()
		}
	case creditFrame:
		l.credits.Return(h.total)
	case probeFrame:
		l.e.engine.HandleProbe(&l.in.queue, l.peer, l.in.queue.CallOf(h.context, h.sequence, text))
	default:
		return l.handleTagged(h, text, body)
	}
	return nil
}

// handleMessage takes a message of a step, or its announcement.
func (l *link) handleMessage(h header, text, body []byte) error {
	announced := h.kind == announceFrame
	if !announced && !l.credits.Arrive(h.total) {
		return fmt.Errorf("a message of %d bytes without credits", h.total)
	}
	m := match.Header{Call: l.in.queue.CallOf(h.context, h.sequence, text), Size: h.total}
	verdict, r, s := l.in.queue.Match(&m, &l.e.engine)
	switch {
	case verdict == match.Deliver && announced:
		l.in.queue.Unpost(r)
		l.e.pulls.begin(&pull{link: l, kind: pullFrame, number: h.number, recv: r})
	case verdict == match.Deliver:
		match.Land(r.Recv, body)
		l.received(h.total)
		l.in.queue.Unpost(r)
		l.in.queue.Complete(r)
	case l.e.engine.Refuse(verdict, l.peer, &m, r, s), l.e.engine.Err() != nil: // this rank leaves
	default:
		l.enqueue(m, h, body)
	}
	return nil
}

// enqueue adds an unexpected message.
func (l *link) enqueue(h match.Header, f header, body []byte) {
	m := &match.Message{Header: h, Rendezvous: f.kind == announceFrame}
	if m.Rendezvous {
		l.in.announced = append(l.in.announced, announcement{m, f.number})
	} else {
		m.Data, m.Got = slices.Clone(body), len(body)
	}
	l.in.queue.Enqueue(m) // the credits of the peer are its flow control
	l.e.unexpected = true
}

// received returns credits for a message of a step.
func (l *link) received(size int) {
	if due := l.credits.Consume(size); due > 0 {
		l.control(header{kind: creditFrame, total: due})
	}
}

// resume forgets which contexts the peer may resume: it holds none.
func (l *link) resume() {
	for _, ok := l.in.queue.Resume(); ok; _, ok = l.in.queue.Resume() {
	}
}

// recheckNow looks again at what has come, because more of it is expected than before.
func (l *link) recheckNow() {
	for !l.e.engine.Failed() && l.deliverUnexpected() {
	}
	if m, s := l.in.queue.Excluded(&l.e.engine); m != nil && !l.e.engine.Failed() {
		l.e.engine.FailMismatch(s, l.peer, m.Signature)
	}
	l.resume()
	if l.ending != nil && !l.e.engine.Failed() && (l.starves() || !l.transfers()) {
		l.conclude()
	}
	l.failWaiters()
}

// deliverUnexpected gives one unexpected message to its receive. It returns false if there
// was none to give.
func (l *link) deliverUnexpected() bool {
	verdict, m, r := l.in.queue.MatchUnexpected()
	switch verdict {
	case match.Deliver, match.Continue:
	case match.Unexpected:
		return false
	default:
		l.e.engine.Refuse(verdict, l.peer, &m.Header, r, r.Step)
		return false
	}
	if !m.Rendezvous {
		l.in.queue.Deliver(m, r)
		l.received(m.Size)
		return true
	}
	if err := l.gone(); err != nil {
		l.e.engine.Fail(err)
		return false
	}
	i := slices.IndexFunc(l.in.announced, func(a announcement) bool { return a.message == m })
	number := l.in.announced[i].number
	l.in.announced = slices.Delete(l.in.announced, i, i+1)
	l.in.queue.Continue(m, r)
	l.in.queue.Unpost(r)
	l.e.pulls.begin(&pull{link: l, kind: pullFrame, number: number, recv: r})
	return true
}

// handleCTS sends the piece that the peer asks for.
func (l *link) handleCTS(h header) error {
	l.out.answered++
	tagged := h.kind == ctsFrame
	i := slices.IndexFunc(l.out.sources, func(s *source) bool { return s.number == h.number && (s.tagged != nil) == tagged })
	if i < 0 && tagged {
		if s := l.tagged.CTS(h.number); s != nil {
			i = len(l.out.sources)
			l.out.sources = append(l.out.sources, &source{link: l, number: h.number, data: s.Data, tagged: s})
			l.tagged.AnnounceKeptBack()
		}
	}
	if i < 0 {
		l.control(header{kind: refuseFrame, order: h.order})
		return nil
	}
	s := l.out.sources[i]
	if h.slot >= piecesMax || h.offset != s.asked || h.total < min(len(s.data), 1) || h.total > len(s.data)-s.asked || h.total > pieceMax {
		return fmt.Errorf("a request for %d bytes at %d of a message of %d", h.total, h.offset, len(s.data))
	}
	s.asked += h.total
	l.post(outgoing{source: s, offset: h.offset, n: h.total, slot: h.slot})
	return nil
}

// probe sends a stall probe for each receive that has waited for long: the call in
// which this rank waits for the peer. Ranks that only wait for each other learn so
// that they are in different calls.
func (l *link) probe() {
	if l.in.heard {
		l.in.heard = false
		return
	}
	for _, r := range l.in.queue.Receives() {
		if l.err == nil && !r.Probed {
			r.Probed = true
			s := &r.Step.Signature
			l.detach(header{kind: probeFrame, context: s.Context, sequence: s.Sequence}, s.Call, nil)
		}
	}
}
