package shm

import (
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

// This file has the stores to shared memory that depend on ordering, and states what
// they promise. There is no lock. Each word has one writer, except a rank's status and
// futex words, the decisions about its offers and the word told, which its peers change as
// well, by compare-and-swap and by addition.
// Loads and stores are those of sync/atomic, which are sequentially consistent, except
// for storeRelease and invalidate (ordering_amd64.go, ordering_weak.go), which are
// weaker. Docs/memory-ordering.md goes through every word. The protocols:
//
//  1. Rings. The sender fills the cell, then publishes its sequence word (release).
//     The receiver loads the sequence word (acquire), then reads the cell, and the
//     staging buffer that it names. Then it stores its count of taken cells
//     (release). The sender loads that count (acquire) before it fills the cell or
//     the buffer again. So neither reads what the other writes.
//
//     A pair cell has no such count. A rank writes there when it has taken the peer's
//     frame from it, and the frame that it publishes says so.
//
//  2. Multicast cells. The sender invalidates the sequence word, fills the cell, and
//     publishes the word. It waits for the ranks that the frame was for before it
//     fills the cell again, but not for other ranks, which look at the cell too.
//     These read the readers and the number between two loads of the sequence word,
//     and use them if both loads agree. Both words are written by storeRelease64,
//     which stays behind the invalidation, and read atomically.
//
//  3. Sleeping. A rank that goes to sleep stores in its status word what it sleeps
//     for, then looks at everything once more, then sleeps on its futex word. A peer
//     stores what it has to tell, then loads the status word. Both are
//     sequentially consistent: of a store and the load of the other side's word that
//     follows it, at least one sees the other. A release followed by a load is not
//     enough for that. So the peer executes a full fence between the two
//     (Endpoint.wakePeers), or stores by a read-modify-write (takeInline).
//
//  4. Flow control. The receiver writes its reply to a rendezvous message before it
//     stores its count of taken frames (1); the sender reads it after it has seen that
//     count. A reply that changes later, and the contexts that the receiver admits, are
//     followed by a wake-up (3). Their words are read one by one: a sender that sees
//     some old and some new ones sends a message too many, or waits until it is woken.
//
//  5. Records. The stall record of a rank is a sequence lock: its version is odd
//     while it is written. The termination record is written before the status says
//     that the rank has terminated, and never again. A call text is invalidated
//     before it is written, and its hash published afterwards; a reader loads the hash
//     before and after it copies the text, with loadFence before the second load. The text of
//     a reason is right if its hash is. A revocation record is written before the count of revocations includes it, and again
//     when that many others have come: a reader loads the count once more after it has read
//     the record.
//
//  6. Memory that a peer reads by cross-memory attach, or in the arena. The rank that
//     gives up, or leaves, stores that in its status word (storeFenced) before its caller
//     may write to the memory again; the rank that revokes a communicator stores its count
//     of revocations so. A peer that has read there loads both words afterwards (loadFence),
//     and drops what it has read unless the rank is still there, and has not revoked the
//     communicator of the message.
//
//  7. Offers. A tagged message that its receiver reads in the memory of its sender is read
//     or withdrawn, and not both: whoever decides about the offer first, by a
//     compare-and-swap (rankState.decide). The decision is followed by the read of the
//     receiver, or the store of the sender's caller to the memory. Offers of one place
//     have ascending numbers, and the one before has ended when the next is made. So the
//     greatest number that was decided is all that the word needs to hold, and only the
//     receiver changes it in the ordinary case. A sender whose communicator is revoked
//     withdraws an offer also if its receiver reads it: 6 has the receiver drop that.
//
//  8. Telling. A rank that has terminated, or has revoked a communicator, adds to the word
//     told of its peers, then loads their status words: 3. A rank looks at that word, which
//     is its own, whenever it begins to do something and while it waits, and at what all
//     peers publish if the word has changed.

//  9. The end of a process. A thread of the rank stores its number in the word owner, as one
//     that holds a robust futex, and keeps it until the endpoint is closed. If the process ends
//     first, the kernel marks the word when that thread exits, and gives the number of a
//     process away only when all of its threads have exited. So what a peer has read by that
//     number is the rank's if the word is still the thread's afterwards (loadFence).

// publish makes the frame in a cell visible. Number is that of the frame.
func (c *cell) publish(number uint32, k frameKind) {
	storeRelease(&c.sequence, number<<8|uint32(k))
}

// holds reports whether the frame with a number is in the cell, and of what kind it
// is.
func (c *cell) holds(number uint32) (frameKind, bool) {
	w := c.sequence.Load()
	return frameKind(w), w>>8 == number&(1<<24-1) && w&0xff != 0
}

// A ring is a queue of frames from one rank to another. This line, which the
// receiver writes and the sender reads, is followed by the cells, where it is the
// other way round.
type ring struct {
	taken      atomic.Uint32 // frames that were taken out of their cells
	replies    atomic.Uint32 // what becomes of the rendezvous messages, by place: see reply
	multicasts atomic.Uint64 // multicast frames of the sender that were taken
	admits     atomic.Uint32 // 0: frames of every context; otherwise 1 + the number of those in contexts
	contexts   [admittedMax]atomic.Uint32
}

var _ [lineLen]byte = [unsafe.Sizeof(ring{})]byte{}

const (
	// rendezvousMax is how many rendezvous messages of a sender may be open with a place
	// for the receiver's reply.
	rendezvousMax = 12
	// admittedMax is how many contexts a receiver can name.
	admittedMax = 11
)

// A reply is what a receiver says about a rendezvous message before it takes the frame
// that announces it: two bits of the word replies, at the place that the sender has
// chosen.
type reply uint32

const (
	complete reply = iota // it has read the message
	deferred              // it expects the message later, and will change its reply
	pulls                 // it cannot read the sender's memory: the message is to be staged
	replyMask
)

// at returns the reply at a place of the word replies.
func (r reply) at(place uint32) uint32 { return uint32(r) << (2 * place) }

func replyAt(replies, place uint32) reply { return reply(replies>>(2*place)) & replyMask }

// cell returns one of a ring's cells.
func (r *ring) cell(i uint32) *cell {
	return (*cell)(unsafe.Add(unsafe.Pointer(r), lineLen*(1+uintptr(i))))
}

// release publishes taken, the number of frames that the receiver has taken.
func (r *ring) release(taken uint32) { storeRelease(&r.taken, taken) }

// releaseFenced publishes taken before anything is loaded afterwards. On amd64 a Store is
// the same instruction, but under the race detector it is a release and no more.
func (r *ring) releaseFenced(taken uint32) { r.taken.Swap(taken) }

// releaseMulticast publishes taken, the number of multicast frames that the receiver has
// taken or passed over.
func (r *ring) releaseMulticast(taken uint64) { r.multicasts.Store(taken) }

// restrict says of which contexts the receiver takes messages of steps. A sender that
// reads the words meanwhile may send a message too many, or see the rest when it is woken.
func (r *ring) restrict(contexts []uint32) {
	for i, c := range contexts {
		r.contexts[i].Store(c)
	}
	r.admits.Store(1 + uint32(len(contexts)))
}

// lift says that the receiver takes messages of every context.
func (r *ring) lift() { r.admits.Store(0) }

// admitsContext reports whether the receiver takes messages of a context.
func (r *ring) admitsContext(context uint32) bool {
	n := r.admits.Load()
	if n == 0 {
		return true
	}
	for i := range min(n-1, admittedMax) {
		if r.contexts[i].Load() == context {
			return true
		}
	}
	return false
}

// A multicastWriter writes the multicast cells of a rank.
type multicastWriter struct {
	cells   unsafe.Pointer // nil where there are none
	written uint64         // frames
	readers [multicastDepth]uint64
}

func multicastCell(cells unsafe.Pointer, number uint64) *cell {
	return (*cell)(unsafe.Add(cells, number%multicastDepth*lineLen))
}

// begin takes the oldest cell back. Its readers have taken it.
func (w *multicastWriter) begin() *cell {
	c := multicastCell(w.cells, w.written)
	invalidate(&c.sequence)
	return c
}

// publish makes the frame in a cell visible to its readers.
func (w *multicastWriter) publish(c *cell, readers uint64) {
	w.readers[w.written%multicastDepth] = readers
	w.written++
	p := c.multicast()
	storeRelease64(&p.readers, readers)
	storeRelease64(&p.number, w.written)
	c.publish(uint32(w.written), multicastFrame)
}

// readMulticast returns the number and the readers of the frame in a multicast cell.
// It returns no number if there is no frame, or if the sender writes there.
func readMulticast(c *cell) (number, readers uint64) {
	for range 100 { // a sender that is right writes once, and waits for readers before it does so again
		w := c.sequence.Load()
		if w == 0 {
			return 0, 0
		}
		p := c.multicast()
		number, readers = p.number.Load(), p.readers.Load()
		if c.sequence.Load() == w {
			return number, readers
		}
	}
	return 0, 0
}

// A rank's status word. Its lowest byte is how far the rank has come. While the rank
// sleeps, the rest says what for, so that a peer that brings something else lets it
// sleep.
const (
	absent        uint64 = iota
	joined               // it has opened its endpoint
	left                 // it has closed its endpoint
	aborted              // it gave up
	lifecycleMask        = 0xff

	forTaken  uint64 = 1 << 8 // until a peer takes what was sent to it
	forAny    uint64 = 1 << 9 // for a frame of any rank
	fromShift        = 32     // 1 + the one rank for whose frame it sleeps
	sleepMask        = ^uint64(lifecycleMask)
)

func (s *rankState) lifecycle() uint64 { return s.status.Load() & lifecycleMask }

// join notes that the rank has opened its endpoint. It returns false if it has done
// so before.
func (s *rankState) join() bool { return s.status.CompareAndSwap(absent, joined) }

// terminate publishes the rank's termination record. From then on the rank's memory is
// its program's again.
func (s *rankState) terminate(lifecycle uint64) { storeFenced(&s.status, lifecycle) }

// unchanged reports whether what was read before in the memory of the rank's process was
// read before the rank terminated, and before it had revoked more than so many communicators.
func (s *rankState) unchanged(revocations uint64) bool {
	loadFence()
	return s.lifecycle() == joined && s.revocations.count.Load() == revocations
}

// ownedBy reports whether what was read before in the memory of the rank's process, by the
// number of that, was read before the process ended.
func (s *rankState) ownedBy(thread uint32) bool {
	loadFence()
	return s.owner.Load() == thread
}

// tell has the rank look at what its peers publish, also if it sleeps.
func (s *rankState) tell() {
	s.told.Add(1)
	s.wakeFrom(s.status.Load())
}

// An offer is the number of a message that its receiver may take from its sender's memory.
// Its remainder by offersMax is its place in rankState.decisions. 0 is none.
type offer uint64

// offersMax is how many offers of a rank may be open.
const offersMax = 64

// decide decides what becomes of an offer of the rank: its receiver takes the message, or
// its sender withdraws it. It reports whether the other side has not decided before.
func (s *rankState) decide(o offer) bool {
	word := &s.decisions[o%offersMax]
	for {
		last := word.Load()
		if last >= uint64(o) {
			return false
		}
		if word.CompareAndSwap(last, uint64(o)) {
			return true
		}
	}
}

// announceSleep says what the rank sleeps for. It returns the value of the futex word
// to sleep on, and false where the rank cannot sleep.
func (s *rankState) announceSleep(word uint64) (futex uint32, ok bool) {
	futex = s.futex.Load()
	return futex, s.status.CompareAndSwap(joined, word)
}

// awake notes that the rank no longer sleeps.
func (s *rankState) awake(word uint64) { s.status.CompareAndSwap(word, joined) }

// wakeFrom wakes the rank if its status word is still w, and says that it sleeps. Of
// several peers that want to, one wakes it.
func (s *rankState) wakeFrom(w uint64) {
	if w&sleepMask != 0 && s.status.CompareAndSwap(w, w&lifecycleMask) {
		s.wake()
	}
}

// wake wakes the rank from its sleep on the futex word.
func (s *rankState) wake() {
	s.futex.Add(1)
	futexWake(s.futexWord())
}

func (s *rankState) futexWord() *uint32 { return (*uint32)(unsafe.Pointer(&s.futex)) }

// sleepsFor reports whether a rank with status word w sleeps for what a peer has
// done: written a frame, or taken one.
func sleepsFor(w uint64, peer int, wrote, took bool) bool {
	return wrote && (w&forAny != 0 || w>>fromShift == uint64(peer)+1) || took && w&forTaken != 0
}

// write writes a stall record.
func (r *stallRecord) write(sig *transport.Signature, hash uint32) {
	r.version.Add(1)
	r.context.Store(sig.Context)
	r.sequence.Store(sig.Sequence)
	r.hash.Store(hash)
	r.used.Store(1)
	r.version.Add(1)
}

// read returns the call in a stall record of a context.
func (r *stallRecord) read(context uint32) (sequence, hash uint32, ok bool) {
	for range 100 { // the writer may have been killed
		v := r.version.Load()
		ok = r.used.Load() != 0 && r.context.Load() == context
		sequence, hash = r.sequence.Load(), r.hash.Load()
		if v%2 == 0 && r.version.Load() == v {
			return sequence, hash, ok
		}
		runtime.Gosched()
	}
	return 0, 0, false
}

// publish adds a revocation. From then on the memory of the communicator's operations is
// their callers' again. Reason is the hash of its text.
func (r *revocationLog) publish(communicator, reason uint32, to []uint64) {
	n := r.count.Load()
	record := r.record(n, len(to))
	record[0].Store(uint64(communicator)<<32 | uint64(reason))
	for i := range to {
		record[1+i].Store(to[i])
	}
	storeFenced(&r.count, n+1)
}

// record returns the words of record n, where the ranks of a job take so many.
func (r *revocationLog) record(n uint64, words int) []atomic.Uint64 {
	i := int(n%uint64(revocationsMax(words))) * (1 + words)
	return r.records[i : i+1+words]
}

// revocationsMax is how many revocations a rank publishes.
func revocationsMax(words int) int { return revocationWords / (1 + words) }

// rankWords returns how many words a bit for each rank takes.
func (l layout) rankWords() int { return (l.size + 63) / 64 }

// at returns revocation n, and whether a rank is told of it, where the ranks of a job take so
// many words. It returns ok = false if others have taken its place.
func (r *revocationLog) at(n uint64, rank, words int) (communicator, reason uint32, told, ok bool) {
	record := r.record(n, words)
	what, to := record[0].Load(), record[1+rank/64].Load()
	ok = r.count.Load()-n < uint64(revocationsMax(words)) // otherwise the rank may write there
	return uint32(what >> 32), uint32(what), to>>(rank%64)&1 != 0, ok
}

// say publishes the text of a reason in a place, unless it is published, and returns its hash.
func (r *revocationLog) say(text []byte, place *int) uint32 {
	h := hashOf(string(text))
	for i := range r.reasons {
		if r.reasons[i].hash.Load() == h {
			return h
		}
	}
	t := &r.reasons[*place]
	*place = (*place + 1) % reasonsMax
	t.size = uint32(copy(t.text[:], text))
	t.hash.Store(h)
	return h
}

// reason returns the text of a reason, or nil if others have taken its place.
func (r *revocationLog) reason(hash uint32) []byte {
	for i := range r.reasons {
		t := &r.reasons[i]
		if t.hash.Load() != hash {
			continue
		}
		text := slices.Clone(t.text[:min(t.size, revocationMax)])
		if hashOf(string(text)) == hash { // otherwise the rank writes there
			return text
		}
	}
	return nil
}
