package shm

import (
	"slices"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

const (
	// rendezvousMin is from where on a message goes by rendezvous, which copies once,
	// in the kernel, and not staged, which copies twice; rendezvousManyMin is the same
	// for a message to several ranks, which is staged once for all.
	//
	// Measured in November 2026 on two cores, by chorale bench -n 2,4 --transport shm,
	// in µs, staged and by rendezvous: allgather of 64 KiB by two ranks 10 and 6.2,
	// scatter by four 13 and 15. What the sender has just written is in its cache, from
	// where staging brings it faster: bcast of 64 KiB 5.5 and 10.8. But where the
	// virtual CPUs have no cache in common (split-cache placement), staging takes three
	// to four times as long, and a rendezvous of what has been read before as long as
	// ever: scatter of 64 KiB by two ranks 22 and 6.5, by four 40 and 13, alltoall of
	// 1 MiB by four 2450 and 370.
	//
	// Where every rank has a core and receives in the same step, it copies twice what is
	// staged, into a buffer and out of one, and once what goes by rendezvous: exchangedMin.
	// In µs, two ranks, 32 KiB staged and by rendezvous: allgather 6.4 and 4.3, alltoall 8.4
	// and 5.4, allreduce 6.3 and 4.2; one way, where the two copy at the same time, bcast 3.1
	// and 6.5, gather 3.3 and 4.7. Oversubscribed: alltoall by four 25 and 29.
	rendezvousMin     = 64 << 10
	rendezvousManyMin = 128 << 10
	exchangedMin      = 32 << 10

	// sharedMin is the same for a message in its sender's arena, to one rank or several.
	// Measured in November 2026 on two cores, by chorale bench --alloc with two ranks, in
	// µs, staged and from the arena: allreduce of 4 KiB 3.4 and 1.7, of 32 KiB 21 and 2.9;
	// bcast of 4 KiB 2.4 and 2.2, of 32 KiB 13 and 9.0. Between goroutines, the allreduce
	// takes 1.1 and 2.6.
	sharedMin = 4 << 10

	// chunkLen is how much of a message goes into a staging buffer where every rank has
	// a core: the receiver reads one chunk while the sender writes the next, and all on
	// their way stay in the first cache. Two ranks broadcast 32 KiB in 2.9 µs so, and in
	// 4.9 by whole buffers. Oversubscribed ranks fill whole buffers while they have the
	// core.
	chunkLen = 2 << 10

	// pipelineDepth is how many frames of a ring are untaken at most while a staged
	// message is sent there, so that its chunks are still in cache when they are read.
	pipelineDepth = 8

	// burst is how many chunks of a message are written before this rank polls again.
	// Two ranks that exchange large messages alternate so, and what they read is still
	// in cache.
	burst = 2

	// groupTimeout is how long the messages of a group wait for a receiver that does not
	// read. Then each is staged on its own: that receiver may be waiting for what another
	// one does next.
	groupTimeout = 5 * time.Millisecond
)

// An outgoing is a message of a step to one rank that is not completely written.
type outgoing struct {
	op            *progress.Op // nil once it is abandoned
	link          *link
	data          []byte
	sent          int       // bytes that are written
	first         uint32    // the number of the frame that it began with, once it has begun
	begun         bool      // a frame is written
	group         int       // the number of entries of the queue, from this one on, that share staging buffers
	noBufferSince time.Time // since when they cannot
}

// start posts every receive and sends what there is room for.
func (e *Endpoint) start(o *progress.Op, step *transport.Step) {
	o.Start(o, match.Call{Signature: step.Signature, Hash: e.calls.hash(step.Signature.Call)}, step.Recvs)
	o.Index = step.Index
	o.Add(len(step.Recvs) + 1) // 1: the step is not complete before all of it has started
	for i := range o.Recvs {
		r := &o.Recvs[i]
		l := &e.links[r.From]
		l.in.queue.Post(r)
		l.in.headUnexpected = false
		e.polls.add(l)
		l.admit()
	}
	// A message that another goroutine polls for may be in the unexpected queue by now.
	e.polls.progressed = true
	queued := false
	for i := range step.Sends {
		s := &step.Sends[i]
		if len(s.Data) > inlineMax {
			e.enqueue(o, s)
			queued = true
			continue
		}
		if len(s.To) >= multicastMin && !queued && e.sendMulticast(&o.Call, s) {
			continue
		}
		for _, to := range s.To {
			l := &e.links[to]
			if !queued && l.out.room(1) {
				l.writeInline(&o.Call, s.Data)
			} else {
				e.out.queue = append(e.out.queue, outgoing{op: o, link: l, data: s.Data})
				o.Add(1)
				e.polls.add(l)
				queued = true
			}
			if l.err != nil {
				e.polls.terminated = true
			}
		}
	}
	e.compareUnexpected(step)
	if e.polls.terminated {
		e.checkPeers()
		e.failUndelivered(step, inlineMax)
	}
	if queued && !o.Over() {
		e.flush()
	}
	o.Complete(1)
	e.wakePeers()
}

// enqueue queues the messages of a Send. They share staging buffers while every
// receiver keeps up.
func (e *Endpoint) enqueue(o *progress.Op, s *transport.Send) {
	first := len(e.out.queue)
	together := len(s.To) > 1
	for _, to := range s.To {
		l := &e.links[to]
		together = together && !waitsLast(e.out.queue[first:], o, l)
		e.out.queue = append(e.out.queue, outgoing{op: o, link: l, data: s.Data})
		e.polls.add(l)
		if l.err != nil {
			e.polls.terminated = true
		}
	}
	o.Add(len(s.To))
	if together {
		e.out.queue[first].group = len(s.To)
	}
}

// waitsLast reports whether one of the last messages of the queue, those of an operation,
// goes to a peer. The messages of an operation are adjacent.
func waitsLast(queue []outgoing, o *progress.Op, l *link) bool {
	for i := len(queue) - 1; i >= 0 && queue[i].op == o; i-- {
		if queue[i].link == l {
			return true
		}
	}
	return false
}

// flush writes what there is room for.
func (e *Endpoint) flush() {
	q := &e.out
	if len(q.queue) > 0 {
		kept := q.queue[:0]
		for i := 0; i < len(q.queue); {
			if m := &q.queue[i]; m.abandoned() {
				if i++; !m.writeEnd() {
					kept = append(kept, *m)
				}
				continue
			}
			n := max(q.queue[i].group, 1)
			group := q.queue[i : i+n]
			i += n
			o := group[0].op
			if o.Over() || overtakes(group, kept) || !e.write(group) {
				kept = append(kept, group...)
			}
		}
		clear(q.queue[len(kept):])
		q.queue = kept
	}
	if len(q.rendezvous) > 0 {
		kept := q.rendezvous[:0]
		for i := range q.rendezvous {
			r := &q.rendezvous[i]
			if (r.abandoned() || !r.op.Over()) && e.finishRendezvous(r) {
				r.link.freePlace(r.place)
				if !r.abandoned() {
					r.op.Complete(1)
				}
			} else {
				kept = append(kept, *r)
			}
		}
		clear(q.rendezvous[len(kept):])
		q.rendezvous = kept
	}
}

// overtakes reports whether a message of the same operation to one of the same ranks
// waits. Messages from one rank to another stay in order.
func overtakes(group, kept []outgoing) bool {
	for i := range group {
		if waitsLast(kept, group[i].op, group[i].link) {
			return true
		}
	}
	return false
}

// write writes what there is room for of a message, or of several that share staging
// buffers, and reports whether they are out of the queue: written, or announced.
func (e *Endpoint) write(group []outgoing) bool {
	m := &group[0]
	call := &m.op.Call
	for n := 0; ; n++ {
		b := noBuffer
		if hasRoom(group) {
			switch {
			case m.sent == 0 && len(m.data) <= inlineMax:
				m.link.writeInline(call, m.data)
				e.polls.progressed = true
				m.op.Complete(1)
				return true
			case n == burst && !e.wait.Oversubscribed:
				return false
			}
			b = e.freeBuffer(forSteps)
			if e.byRendezvous(group) || b == noBuffer && len(group) == 1 && m.link.out.drained() {
				for i := range group {
					e.announce(&group[i])
				}
				e.polls.progressed = true
				return true
			}
		}
		if b == noBuffer {
			if m.group > 1 && e.lacksBuffer(&m.noBufferSince) {
				m.group = 0 // each on its own
			}
			return false
		}
		staged := e.stage(b, m.chunk())
		for i := range group {
			group[i].writeStaged(call, b, staged)
		}
		e.polls.progressed = true
		m.noBufferSince = time.Time{}
		if m.sent == len(m.data) {
			m.op.Complete(len(group))
			return true
		}
	}
}

// hasRoom reports whether another frame can be written to each of the receivers.
func hasRoom(group []outgoing) bool {
	for i := range group {
		out := &group[i].link.out
		if !out.roomIn(group[i].op.Context) || group[i].begun && out.written-out.takenSeen >= pipelineDepth && out.written-out.ring.taken.Load() >= pipelineDepth {
			return false
		}
	}
	return true
}

// chunk returns the message's bytes for the next staging buffer.
func (m *outgoing) chunk() []byte {
	rest := m.data[m.sent:]
	if !m.link.e.wait.Oversubscribed {
		rest = rest[:min(len(rest), chunkLen)]
	}
	return rest
}

// writeInline writes a message that fits into a cell.
func (l *link) writeInline(call *match.Call, message []byte) {
	c := l.out.next()
	c.setStep(len(message), call, l.e.out.multicast.written)
	c.setInline(message)
	l.publish(c, inlineFrame)
}

// begin notes that the next frame is the message's first, and writes its header.
func (m *outgoing) begin(c *cell, call *match.Call) {
	m.begun, m.first = true, m.link.out.written+1
	c.setStep(0, call, m.link.e.out.multicast.written)
}

// writeStaged writes the frame of a message's next n bytes, which are in a staging
// buffer.
func (m *outgoing) writeStaged(call *match.Call, buffer, n int) {
	l := m.link
	c := l.out.next()
	k := chunkFrame
	if !m.begun {
		k = stagedFrame
		m.begin(c, call)
	}
	c.setStaged(n, len(m.data), m.sent, buffer, m.first)
	m.sent += n
	l.publish(c, k)
	l.e.addReader(buffer, l)
}

// cancel removes the messages of an operation that has failed.
func (q *sendQueue) cancel(o *progress.Op) {
	q.queue = slices.DeleteFunc(q.queue, func(m outgoing) bool { return m.op == o })
	q.rendezvous = slices.DeleteFunc(q.rendezvous, func(r pendingRendezvous) bool { return r.op == o })
}

// waitsForPeer reports whether a message of an operation in progress, or an abandoned one, is
// queued or announced.
func (q *sendQueue) waitsForPeer() bool {
	for i := range q.queue {
		if m := &q.queue[i]; m.abandoned() || !m.op.Over() {
			return true
		}
	}
	for i := range q.rendezvous {
		if r := &q.rendezvous[i]; r.abandoned() || !r.op.Over() {
			return true
		}
	}
	return false
}
