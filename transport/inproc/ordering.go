package inproc

import "sync/atomic"

// This file holds the accesses on whose order two ranks rely: those to sequence
// numbers, read counts, incomplete counts and wait words. The rest of a message is
// plain memory that these accesses publish. They are operations of sync/atomic,
// which the Go memory model orders sequentially, so the protocol assumes nothing
// about the processor.
//
// Message: sender → receiver. The messages of a link are numbered from 1, and
// message n uses cell (n-1) mod depth. The sender fills the cell (and its buffer,
// or its rendezvous slice) with plain stores and then stores n in the cell's
// sequence number. A receiver that loads n may read all of it. Only the sender
// writes to a cell, except that either side may acquire a rendezvous message.
//
// Acknowledgment: receiver → sender. A receiver that has read message n stores n
// in the link's read count. A sender that loads n may write cell (n-1) mod depth
// again. The count also travels in the header of each message of the opposite
// direction, published by that message's sequence number. There it may be older than
// the count that the sender has loaded since: the sender passes over the
// acknowledgments of messages that may have been written before.
//
// Pair cells: either rank → the other. A rank that holds a pair cell fills it with plain
// stores and then stores the message's number in the sequence word. The peer, which loads
// that, reads the cell, and then holds it: nobody else writes there until it has stored a
// number of its own. What each has read it also stores in acked, for a sender whose peer
// has ended.
//
// Rendezvous: receiver ↔ sender. A receiver that wants to read the sender's
// memory, or a sender that wants to cancel the message, swaps n for n+1 in the
// sequence number; one of the two succeeds. The receiver reads and then decrements
// the sender's count of incomplete messages. A sender that loads 0 may return its
// memory to the caller.
//
// Sleep and wake-up. A rank that is about to sleep publishes what it waits for in
// its wait word, polls once more, and only then blocks. A rank that does something
// another may wait for (publishes a message, stores a read count, decrements the
// incomplete messages, ends, requests a stall check) does it first and loads the
// other's wait word second. In a sequential order of these four accesses either
// the sleeper's last poll sees the event, or the other rank sees the wait word.
//
// Tagged messages: sender → receiver. The messages of a ring are numbered from 1, and
// message n uses cell (n-1) mod ringDepth. The sender, under the ring's lock, fills the
// cell (and its buffer, or its reference to a rendezvous message, whose bytes stay as they are
// until its receiver says that it has read them, under the lock of the sender's queue) with
// plain stores and then stores n in the cell's number. Whoever
// loads n, under the lock of the receiver's queue, may read all of it, and then stores n in
// the ring's read count. A sender that loads n there may write the cell again. The cost of
// the messages that were received is stored in the same way, and is credit to the sender.
//
// Two ranks have tagged pair cells as well. A sender, under the lock of its ring, fills one
// that its rank holds, and stores the message's number there. Whoever loads that, under the
// lock of the receiver's queue, may read the message, and then stores in read how many it has
// read. A sender of the receiver's rank that loads such a number in read may fill the cell.
//
// A call that is about to sleep adds itself to the queue's sleeping calls and reads the
// rings once more. A sender publishes its message first and loads that number second. So
// either the call's last look sees the message, or the sender sees the call, and reads the
// ring in its place.
//
// Beginning and ending. Exchange sets inProgress of its step first and loads the wait
// word second. Whoever ends an endpoint, or revokes a communicator, sets the wait word first and loads
// inProgress second, to read the last call. So it reads the signature of a step only
// while none is in progress and none can begin.

// publish makes message n, which the cell now holds, visible to the receiver.
func (c *cell) publish(n uint32) { c.sequence.Store(n) }

// holds reports whether the cell holds message n and neither side has acquired it.
func (c *cell) holds(n uint32) bool { return c.sequence.Load() == n }

// acquire takes rendezvous message n from the other side of the link, and reports
// whether the caller was first. No message of this cell has the number n+1,
// because a link has more than one cell.
func (c *cell) acquire(n uint32) bool { return c.sequence.CompareAndSwap(n, n+1) }

// acknowledge adds one to the messages read and tells the sender.
func (r *receiverSide) acknowledge() {
	r.read++
	r.acked.Store(r.read)
}

// publish makes message n of a ring, which the cell now holds, visible to the receiver.
func (c *taggedCell) publish(n uint64) { c.number.Store(n) }

// holds reports whether the cell holds message n.
func (c *taggedCell) holds(n uint64) bool { return c.number.Load() == n }

// sleepers reports whether calls of the rank sleep.
func (q *taggedQueue) sleepers() bool { return q.sleeping.Load() > 0 }

// readCount returns how many messages the receiver has read.
func (l *link) readCount() uint32 { return l.receiver.acked.Load() }

// incompleteCount counts the rendezvous messages of a step whose receivers have
// not read them. The sender sets it and receivers decrement it.
type incompleteCount struct{ n atomic.Int64 }

func (c *incompleteCount) set(n int64)            { c.n.Store(n) }
func (c *incompleteCount) none() bool             { return c.n.Load() <= 0 }
func (c *incompleteCount) decrement() (none bool) { return c.n.Add(-1) <= 0 }

// A wait word says what a sleeping rank waits for, so that other events let it
// sleep. It is 0 while the rank is awake.
type waitWord uint64

const (
	sourceMask     waitWord = 1<<32 - 1 // 1 + the only rank from which a message is due
	severalSources waitWord = 1<<32 - 1 // messages are due from several ranks
	untilRead      waitWord = 1 << 32   // until no rendezvous message is incomplete
	untilFreeCell  waitWord = 1 << 33   // until a link has a free cell
	contextEnded   waitWord = 1 << 63   // the endpoint has ended, or the communicator is revoked; the word stays so
)

// A waiter puts a rank to sleep in one context and wakes it. A rank that replaces
// a sleeper's wait word owes the sleeper one token. Other ranks write to the
// waiter, so it has a cache line of its own.
type waiter struct {
	word  atomic.Uint64 // a waitWord
	due   atomic.Int32  // how many messages of severalSources are due
	token chan struct{} // of capacity 1: one token ends one sleep
}

// load returns the wait word.
func (w *waiter) load() waitWord { return waitWord(w.word.Load()) }

// ended reports whether no step goes on in the context.
func (w *waiter) ended() bool { return w.load()&contextEnded != 0 }

// announce publishes the wait word, and reports whether steps go on in the context.
// Then the caller polls once more and calls block or retract.
func (w *waiter) announce(word waitWord) bool {
	w.due.Store(0)
	return w.word.CompareAndSwap(0, uint64(word))
}

// expect says how many messages are due from several ranks.
func (w *waiter) expect(n int32) { w.due.Add(n) }

// block sleeps until the next token.
func (w *waiter) block() { <-w.token }

// retract takes back the announced wait word. If another rank has replaced it,
// retract consumes the token that this rank owes.
func (w *waiter) retract(word waitWord) {
	if !w.word.CompareAndSwap(uint64(word), 0) {
		<-w.token
	}
}

// wake wakes the rank if it sleeps.
func (w *waiter) wake() {
	if word := w.load(); word != 0 && word&contextEnded == 0 {
		w.wakeFrom(word)
	}
}

// wakeFrom wakes the rank if it still waits for word.
func (w *waiter) wakeFrom(word waitWord) {
	if w.word.CompareAndSwap(uint64(word), 0) {
		w.token <- struct{}{}
	}
}

// messageArrived tells a rank that sleeps with word of a message. A rank that
// waits for messages of several ranks is not woken by each, but by the last, and by
// a rendezvous message, whose sender waits. Until the rank has called expect, due
// is 0 and every message wakes it.
func (w *waiter) messageArrived(word waitWord, from int, rendezvous bool) {
	switch word & sourceMask {
	case waitWord(from) + 1:
		w.wakeFrom(word)
	case severalSources:
		if w.due.Add(-1) <= 0 || rendezvous {
			w.wakeFrom(word)
		}
	}
}

// messageRead tells a sender that its last incomplete rendezvous message has been
// read. A sender whose step has failed may wait in awaitReaders.
func (w *waiter) messageRead() {
	switch word := w.load(); {
	case word&contextEnded != 0:
		select {
		case w.token <- struct{}{}:
		default:
		}
	case word&untilRead != 0:
		w.wake()
	}
}

// end sets the wait word to contextEnded, unless it is that, and wakes the rank if it
// sleeps. Job.mu is held.
func (w *waiter) end() {
	if !w.ended() && w.word.Swap(uint64(contextEnded)) != 0 {
		w.token <- struct{}{}
	}
}
