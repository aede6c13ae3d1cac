package shm

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// receiveTagged takes a frame of the tagged-message protocol. It returns false after a
// protocol error. What a frame says is read once, as in firstFrame.
func (l *link) receiveTagged(c *cell, k frameKind) bool {
	if k.isEager() {
		return l.receiveMessage(c, k)
	}
	p := *c.fragment()
	switch k {
	case rtsFrame, rtsStagedFrame:
		return l.receiveAnnouncement(c, k)
	case fragmentFrame:
		return l.receiveFragment(c.tagged().size, &p)
	case withdrawFrame:
		l.e.engine.Tagged().Withdraw(l.peer, p.number)
	case ctsFrame:
		l.clear(p.number)
		l.tagged.AnnounceKeptBack()
	case addressFrame, placeFrame:
		return l.receiveAddress(&p, k == placeFrame)
	case readFrame:
		s := l.tagged.endReading(p.number)
		if s == nil {
			s = l.endOffer(p.number)
		}
		if s != nil { // otherwise its communicator is revoked
			s.Complete()
			l.tagged.AnnounceKeptBack()
		}
	case creditFrame:
		if p.offset > totalMax {
			l.protocolError()
			return false
		}
		l.tagged.Credits.Return(int(p.offset))
	case pullFrame:
		l.e.out.pull(l, p.number)
	default:
		l.protocolError()
		return false
	}
	l.take()
	return true
}

// taggedRemoteMin is how long a rendezvous message is at least that its receiver reads
// in its sender's memory, in bytes.
const taggedRemoteMin = 16 << 10

// clear answers a CTS: with the address of the contents if the peer can read them there,
// otherwise with the contents. The peer asks again if it cannot.
func (l *link) clear(number uint32) {
	s := l.tagged.endReading(number)
	if s == nil {
		s = l.endOffer(number)
	}
	if s == nil {
		if s = l.tagged.CTS(number); s == nil {
			return // it is withdrawn
		}
		place, shared := l.e.place(s.Data)
		readable := !s.Copied() && len(s.Data) >= taggedRemoteMin && l.state.lifecycle() == joined
		if readable && shared {
			l.tagged.reading = append(l.tagged.reading, s)
			l.control(controlFrame{kind: placeFrame, number: number, value: place})
			return
		}
		if readable && l.canReadPeer() {
			l.tagged.reading = append(l.tagged.reading, s)
			l.e.out.promoter.note(s.Data)
			l.control(controlFrame{kind: addressFrame, number: number, value: int(uintptr(unsafe.Pointer(unsafe.SliceData(s.Data))))})
			return
		}
	}
	l.tagged.cleared = append(l.tagged.cleared, s)
	l.e.polls.unflushed = true
}

// endReading returns the message of a number that the peer may read, which it does no
// more, or nil.
func (t *taggedLink) endReading(number uint32) *progress.PendingSend {
	i := slices.IndexFunc(t.reading, func(s *progress.PendingSend) bool { return s.Number == number })
	if i < 0 {
		return nil
	}
	s := t.reading[i]
	t.reading = slices.Delete(t.reading, i, i+1)
	return s
}

// receiveAddress reads the contents of a message that this rank has asked for where the
// peer says.
func (l *link) receiveAddress(p *fragmentPayload, shared bool) bool {
	m := l.e.engine.Tagged().Requested(l.peer, p.number)
	if m == nil { // its communicator is revoked
		l.take()
		l.control(controlFrame{kind: readFrame, number: p.number})
		return true
	}
	if m.Got > 0 || m.Size == 0 {
		l.protocolError()
		return false
	}
	l.take()
	return l.fetch(m, p.offset, shared)
}

// fetch reads a message at an address of the peer's memory, or in its arena. If that is not
// possible, it asks for the message. It returns false if the peer has gone, or is none.
func (l *link) fetch(m *match.Tagged, address uint64, shared bool) bool {
	var err error
	if shared {
		var b []byte
		if b, err = l.shared(address, uint64(m.Size)); b == nil && err == nil {
			l.protocolError()
			return false
		}
		copy(m.Data, b)
	} else {
		err = errors.ErrUnsupported
		if l.canReadPeer() {
			err = l.process.read(m.Data, uintptr(address))
		}
		if err != nil {
			l.cma = cmaFails
		}
	}
	switch {
	case err == errOtherProcess:
		l.end(&transport.PeerError{Peer: l.peer, Err: transport.ErrLost, Reason: "its process has ended"})
		return false
	case err != nil:
		l.control(controlFrame{kind: ctsFrame, number: m.Number})
		return true
	case !l.state.unchanged(l.heard) && !l.explain(m.Context): // its memory may have been reused before it was read
		return l.err == nil
	}
	m.Got = m.Size
	l.control(controlFrame{kind: readFrame, number: m.Number})
	m.Done(nil)
	return true
}

// receiveFragment takes contents of a message that this rank has asked for, n bytes.
func (l *link) receiveFragment(n uint32, p *fragmentPayload) bool {
	m := l.e.engine.Tagged().Requested(l.peer, p.number)
	if m == nil { // its communicator is revoked
		l.take()
		return true
	}
	b, ok := l.staged(p.buffer, n)
	if !ok || p.offset != uint64(m.Got) || int(n) > m.Size-m.Got {
		l.protocolError()
		return false
	}
	m.Got += copy(m.Data[m.Got:], b)
	l.take()
	if m.Got == m.Size {
		m.Done(nil)
	}
	return true
}

// receiveMessage takes an eager message.
func (l *link) receiveMessage(c *cell, k frameKind) bool {
	var info transport.MessageInfo
	data, context, ok := l.readEager(c, k, &info)
	if !ok || !l.mayHold(info.Size) {
		l.protocolError()
		return false
	}
	if r := l.e.engine.Posted(&info, context); r != nil {
		l.landEager(r, c, k, &info, data)
		return true
	}
	l.tagged.held += info.Size + transport.MessageCost
	m := l.e.engine.Tagged().New(info.Size)
	m.MessageInfo, m.Context = info, context
	copy(m.Data, data)
	l.takeEagerFrame(c, k)
	l.e.engine.Arrived(m)
	return true
}

// landEager gives an eager message to a posted receive.
func (l *link) landEager(r *progress.Message, c *cell, k frameKind, info *transport.MessageInfo, data []byte) {
	copy(r.Data(), data)
	l.takeEagerFrame(c, k)
	r.Received(info)
	l.returnCredits(info.Size)
}

// takeEagerFrame notes that an eager message was taken out of its cell.
func (l *link) takeEagerFrame(c *cell, k frameKind) {
	if k == eagerPairFrame {
		l.takePair(c)
	} else {
		l.take()
	}
}

// mayHold reports whether the peer has had the credits for an eager message of a size.
func (l *link) mayHold(size int) bool {
	return l.tagged.held+size+transport.MessageCost <= transport.TaggedMax
}

// readEager returns the contents of the eager message in a cell, and its context. The cell is
// read once, and info written field by field: see [progress.Message.Received].
func (l *link) readEager(c *cell, k frameKind, info *transport.MessageInfo) (data []byte, context uint32, ok bool) {
	h := c.tagged()
	size, typeLen, context, tag := h.size, h.typeLen, h.context, h.tagValue()
	b, ok := l.eagerBytes(c, k, size)
	if !ok || typeLen > size || tag < 0 {
		return nil, 0, false
	}
	info.From, info.Tag, info.Size, info.Type = l.peer, tag, int(size-typeLen), l.tagged.TypeName(b[:typeLen])
	return b[typeLen:], context, true
}

// eagerBytes returns the type and the contents of an eager message, which take so many bytes
// together.
func (l *link) eagerBytes(c *cell, k frameKind, size uint32) (b []byte, ok bool) {
	switch k {
	case eagerFrame:
		if size <= inlineMax {
			return c.body[:size], true
		}
	case eagerPairFrame:
		if size <= pairDataMax && l.pair.has(c) {
			return c.pair().data[:size], true
		}
	default:
		return l.staged(c.fragment().buffer, size)
	}
	return nil, false
}

// receiveAnnouncement takes the announcement of a rendezvous message.
func (l *link) receiveAnnouncement(c *cell, k frameKind) bool {
	h, rts := *c.tagged(), *c.rts()
	var b []byte
	ok := false
	if k == rtsFrame {
		if h.size <= rtsTypeMax {
			b, ok = rts.typeName[:h.size], true
		}
	} else {
		b, ok = l.staged(*rts.buffer(), h.size)
	}
	if !ok || h.tagValue() < 0 || rts.total > totalMax || l.e.engine.Tagged().Overrun(l.peer) {
		l.protocolError()
		return false
	}
	info := transport.MessageInfo{From: l.peer, Tag: h.tagValue(), Size: int(rts.total), Type: l.tagged.TypeName(b)}
	l.take()
	if l.err == nil {
		l.e.engine.Offered(&info, h.context, rts.number, match.Offer{
			ID: uint64(rts.offer), Address: rts.address &^ inArena, Shared: rts.address&inArena != 0, Take: l.tagged.take,
		})
	}
	return true
}

// dropTagged notes that the peer has gone: its rendezvous messages are lost, and
// nothing is written to it any more.
func (l *link) dropTagged() {
	t := &l.tagged
	(*hooks)(l.e).AddWaiters(l.peer, -len(t.copies))
	t.controls, t.frames, t.cleared, t.reading, t.copies, t.unsent = nil, nil, nil, nil, nil, 0 // the messages of the frames end in PeerGone
	l.e.engine.PeerGone(l.peer, l.err)
	t.Drop()
}
