package shm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/match"
)

// The litmus tests have the protocols of ordering.go run between threads, each with
// the functions that the endpoints use, while other threads want the same processors
// and the same caches. They prove nothing for a processor that none of us has; but a
// protocol that is wrong on this one fails here within a fraction of a second.

// A litmus is the threads of one test.
type litmus struct {
	t       *testing.T
	until   time.Time
	threads sync.WaitGroup
	stopped atomic.Bool
	rounds  atomic.Uint64 // of all threads
}

const (
	// litmusTime is how long each of the tests takes, if it has made roundsMin rounds by
	// then. It does not wait for these longer than litmusMax.
	litmusTime = 300 * time.Millisecond
	roundsMin  = 1000
	litmusMax  = 30 * time.Second
)

// runLitmus runs the parts, each on a thread of its own, beside load.
func runLitmus(t *testing.T, parts ...func(l *litmus)) {
	d := litmusTime
	if testing.Short() {
		d /= 8
	}
	const load = 2
	// A part that spins keeps its processor. So everyone has one, and the kernel
	// interrupts them wherever it likes.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(len(parts) + load + 1))
	l := &litmus{t: t, until: time.Now().Add(d)}
	for range load {
		l.threads.Go(l.load)
	}
	for _, part := range parts {
		l.threads.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer l.stopped.Store(true) // what it leaves, nobody else waits for
			part(l)
		})
	}
	l.threads.Wait()
	if l.rounds.Load() < roundsMin && !t.Failed() {
		t.Errorf("only %d rounds", l.rounds.Load())
	}
}

// load fills the caches and the store buffers, and now and then a processor.
func (l *litmus) load() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	memory := make([]uint64, 1<<18)
	random := rand.New(rand.NewPCG(1, 2))
	for !l.over() {
		for range 1000 {
			memory[random.IntN(len(memory))]++
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
	}
}

func (l *litmus) over() bool {
	late := time.Since(l.until)
	return l.stopped.Load() || late > 0 && l.rounds.Load() >= roundsMin || late > litmusMax
}

// await polls until cond holds. It returns false if the test is over before.
func (l *litmus) await(cond func() bool) bool {
	for polls := 1; !cond(); polls++ {
		if polls%100 == 0 {
			if l.over() {
				return false
			}
			yield()
		}
	}
	return true
}

// errorf fails the test, and ends it.
func (l *litmus) errorf(format string, args ...any) {
	l.t.Errorf(format, args...)
	l.stopped.Store(true)
}

// pattern fills p with what only message n has.
func pattern(p []byte, n uint32) []byte {
	for i := 0; i+8 <= len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], uint64(n)<<32|uint64(i))
	}
	return p
}

// hasPattern reports whether all of p is of message n.
func hasPattern(p []byte, n uint32) error {
	for i := 0; i+8 <= len(p); i += 8 {
		if got, want := binary.LittleEndian.Uint64(p[i:]), uint64(n)<<32|uint64(i); got != want {
			return fmt.Errorf("byte %d of message %d is of message %d, byte %d", i, n, got>>32, uint32(got))
		}
	}
	return nil
}

// Protocol 1, between a cell's sequence word and the rest of it, and both ways: the
// sender fills it again as soon as it is taken.
func TestAFrameIsWholeWhenItIsVisible(t *testing.T) {
	ends := job(t, 2)
	sender := func(l *litmus) {
		e := ends[0]
		out := &e.links[1].out
		message := make([]byte, inlineMax)
		for n := uint32(1); l.await(func() bool { return out.room(1) }); n++ {
			e.links[1].writeInline(callNumber(n), pattern(message, n))
			e.wakePeers()
		}
	}
	receiver := func(l *litmus) {
		in := &ends[1].links[0]
		for n := uint32(1); ; n++ {
			var c *cell
			var k frameKind
			if !l.await(func() bool { c, k = in.in.nextInRing(); return c != nil }) {
				return
			}
			h := *c.step()
			if want := (stepHeader{size: inlineMax, context: 1, sequence: n, hash: n}); h != want || k != inlineFrame {
				l.errorf("frame %d is of kind %d, with header %+v", n, k, h)
			}
			if err := hasPattern(c.body[:], n); err != nil {
				l.errorf("%v", err)
			}
			if n%2 == 0 {
				in.take()
			} else {
				in.takeInline()
			}
			ends[1].wakePeers()
			l.rounds.Add(1)
		}
	}
	runLitmus(t, sender, receiver)
}

// Protocol 1, between a frame and the staging buffer that it names.
func TestAStagingBufferHoldsItsChunkUntilItsFrameIsTaken(t *testing.T) {
	ends := job(t, 2)
	const chunk = 1 << 10
	sender := func(l *litmus) {
		e := ends[0]
		link := &e.links[1]
		message := make([]byte, chunk)
		for n := uint32(1); ; n++ {
			b := noBuffer
			if !l.await(func() bool {
				if link.out.room(1) {
					b = e.freeBuffer(int(n%2) * stagingReserved)
				}
				return b != noBuffer
			}) {
				return
			}
			m := outgoing{link: link, data: pattern(message, n)}
			m.writeStaged(callNumber(n), b, e.stage(b, message))
			e.wakePeers()
		}
	}
	receiver := func(l *litmus) {
		in := &ends[1].links[0]
		for n := uint32(1); ; n++ {
			var c *cell
			if !l.await(func() bool { c, _ = in.in.nextInRing(); return c != nil }) {
				return
			}
			p, ok := in.staged(c.staged().buffer, c.step().size)
			if !ok || len(p) != chunk {
				l.errorf("frame %d names %d bytes of buffer %d", n, c.step().size, c.staged().buffer)
				return
			}
			if err := hasPattern(p, n); err != nil {
				l.errorf("%v", err)
			}
			in.take()
			ends[1].wakePeers()
			l.rounds.Add(1)
		}
	}
	runLitmus(t, sender, receiver)
}

func callNumber(n uint32) *match.Call {
	return &match.Call{Signature: transport.Signature{Context: 1, Sequence: n}, Hash: n}
}

// Protocol 2. Rank 1 reads every frame. Rank 2 is not among the readers, so that the
// sender does not wait for it; it looks at the cells nevertheless.
func TestARankThatIsNoReaderSeesTheReadersOfTheNumber(t *testing.T) {
	ends := job(t, 4)
	readersOf := func(number uint64) uint64 { return 1<<1 | number<<3 }
	sender := func(l *litmus) {
		e := ends[0]
		w := &e.out.multicast
		message := make([]byte, multicastMax)
		taken := &e.links[1].out.ring.multicasts
		for l.await(func() bool { return w.written-taken.Load() < multicastDepth }) {
			n := w.written + 1
			c := w.begin()
			c.setStep(multicastMax, callNumber(uint32(n)), 0)
			c.setMulticast(pattern(message, uint32(n)))
			w.publish(c, readersOf(n))
		}
	}
	reader := func(l *litmus) {
		in := &ends[1].links[0]
		for n := uint32(1); ; n++ {
			var c *cell
			if !l.await(func() bool { c = in.nextMulticast(); return c != nil }) {
				return
			}
			if err := hasPattern(c.multicast().data[:c.step().size], n); err != nil || c.step().sequence != n {
				l.errorf("frame %d is of call %d: %v", n, c.step().sequence, err)
			}
			in.takeMulticast()
			l.rounds.Add(1)
		}
	}
	bystander := func(l *litmus) {
		cells := ends[2].links[0].in.multicastCells
		for i := uint64(0); !l.over(); i++ {
			for range 50 {
				number, readers := readMulticast(multicastCell(cells, i))
				if number != 0 && (readers != readersOf(number) || (number-1)%multicastDepth != i%multicastDepth) {
					l.errorf("cell %d has frame %d with the readers of frame %d", i%multicastDepth, number, readers>>3)
				}
			}
			l.rounds.Add(1)
		}
	}
	runLitmus(t, sender, reader, bystander)
}

// Protocol 3, in the form in which it fails: in each round, one rank announces that it
// sleeps and looks once more, while its peer writes a frame, or takes one, and looks at
// the status word. It must not be that neither sees what the other did.
func TestARankThatFallsAsleepSeesAFrameOrIsWoken(t *testing.T) {
	ends := job(t, 2)
	link := &ends[0].links[1]
	testWakeups(t, ends, forAny,
		func(n uint32) {
			link.writeInline(callNumber(n), nil)
			ends[0].wakePeers()
		},
		func(n uint32) bool { c, _ := ends[1].links[0].in.nextInRing(); return c != nil },
		func(uint32) { ends[1].links[0].take() },
	)
}

func TestASenderThatFallsAsleepSeesRoomOrIsWoken(t *testing.T) {
	for name, take := range map[string]func(*link){"take": (*link).take, "takeInline": (*link).takeInline} {
		t.Run(name, func(t *testing.T) {
			ends := job(t, 2)
			link := &ends[0].links[1]
			testWakeups(t, ends, forTaken,
				func(uint32) {
					take(link)
					ends[0].wakePeers()
				},
				func(n uint32) bool { return ends[1].links[0].out.ring.taken.Load() == n },
				func(uint32) {},
			)
		})
	}
}

// testWakeups has rank 0 act and rank 1 fall asleep at the same time, again and again.
// Acted is what rank 1 sees of that, and next makes it ready for the next round.
func testWakeups(t *testing.T, ends []*Endpoint, reason uint64, act func(n uint32), acted func(n uint32) bool, next func(n uint32)) {
	var begun, ended [2]atomic.Uint32
	meet := func(l *litmus, words *[2]atomic.Uint32, rank int, n uint32) bool {
		words[rank].Store(n)
		return l.await(func() bool { return words[1-rank].Load() >= n })
	}
	peer := func(l *litmus) {
		random := rand.New(rand.NewPCG(3, 4))
		status := &ends[0].links[1].state.status
		for n := uint32(1); meet(l, &begun, 0, n); n++ {
			for range random.IntN(1 << random.IntN(9)) {
				status.Load() // so that it is in the cache, where a load does not wait for a store
			}
			act(n)
			if !meet(l, &ended, 0, n) {
				return
			}
		}
	}
	sleeper := func(l *litmus) {
		random := rand.New(rand.NewPCG(5, 6))
		s := ends[1].state
		word := joined | reason
		for n := uint32(1); meet(l, &begun, 1, n); n++ {
			for range random.IntN(1 << random.IntN(9)) {
				acted(n)
			}
			futex, ok := s.announceSleep(word)
			saw := acted(n)
			if !meet(l, &ended, 1, n) {
				return
			}
			if woken := s.futex.Load() != futex; !ok || !saw && !woken {
				l.errorf("round %d: the rank sleeps (announced: %v), and nobody wakes it", n, ok)
				return
			}
			s.awake(word)
			next(n)
			ends[1].wakePeers()
			l.rounds.Add(1)
		}
	}
	runLitmus(t, peer, sleeper)
}

// Protocol 3, as the endpoints do it, with the futex: pairs of ranks that sleep for
// every message. A rank that misses a wakeup sleeps for an hour.
func TestNoWakeupIsLost(t *testing.T) {
	ends := job(t, 4)
	for _, e := range ends {
		e.wait.stallTimeout = time.Hour
		e.wait.Oversubscribed = true
	}
	d := litmusTime
	if testing.Short() {
		d /= 8
	}
	late := time.AfterFunc(30*time.Second, func() {
		t.Error("a rank sleeps, and nobody wakes it")
		for _, e := range ends {
			e.Close()
		}
	})
	defer late.Stop()
	var slept atomic.Uint64
	each(t, ends, func(e *Endpoint) error {
		random := rand.New(rand.NewPCG(uint64(e.Rank()), 7))
		peer := e.Rank() ^ 1
		s := sig
		for start := time.Now(); ; s.Sequence++ {
			last := byte(0)
			if time.Since(start) > d {
				last = 1
			}
			into := make([]byte, 1)
			futex := e.state.futex.Load()
			if random.IntN(8) == 0 {
				time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
			}
			for until := random.IntN(5000); until > 0; until-- { // within which the peer falls asleep
				e.state.status.Load()
			}
			err := e.Exchange(t.Context(), transport.Step{
				Signature: s,
				Sends:     []transport.Send{{To: []int{peer}, Data: []byte{last}}},
				Recvs:     []transport.Recv{{From: peer, Into: into}},
			})
			if e.state.futex.Load() != futex {
				slept.Add(1)
			}
			if err != nil || last|into[0] != 0 {
				return err
			}
		}
	})
	if slept.Load() == 0 {
		t.Error("no rank has slept and was woken")
	}
}
