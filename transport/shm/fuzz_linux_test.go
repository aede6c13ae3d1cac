package shm

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
)

const (
	fuzzRanks = 4                     // so that there are multicast cells
	hostile   = 0                     // the rank that writes what it likes
	victim    = 1                     // the rank that must return
	fuzzTime  = 30 * time.Millisecond // after which the context of the victim ends
	fuzzHangs = 10 * time.Second      // after which an operation hangs
	fuzzMost  = 48 << 20              // bytes that are allocated at most while one input is tried
)

// FuzzCells has one rank write garbage into all that it writes in the segment: the cells
// and staging buffers of messages to others, its multicast cells, its rank state, and
// the words by which it answers its senders. Another rank sends and receives meanwhile.
// It must return, with or without an error, soon after its context has ended; it must
// write to nothing but its own memory, and allocate little.
//
// The first byte of an input says what the victim does. The rest is read by a script.
func FuzzCells(f *testing.F) {
	for plan := range byte(len(fuzzPlans)) {
		f.Add([]byte{plan, 0, 3, 2, 4})                               // honest messages
		f.Add([]byte{plan, 1, 1, 0x80, 8})                            // an inline frame
		f.Add([]byte{plan, 1, 2, 0x80, 0xff, 0xff, 0xff, 0x7f})       // a staged one, too long
		f.Add([]byte{plan, 5, 0, 0, 0, 40, 0xff, 0xff, 0xff, 2, 3})   // garbage in a ring
		f.Add([]byte{plan, 5, 2, 0, 0, 40, 0x77, 0xff, 0xff, 2, 3})   // garbage in the rank state
		f.Add([]byte{plan, 2, 3, 5, 1, 0, 0, 64, 0xff, 0xff, 0xff})   // in the words of a receiver
		f.Add([]byte{plan, 1, 3, 0x80, 0, 1, 7, 0x80, 200, 2, 3, 3})  // a rendezvous
		f.Add([]byte{plan, 3, 3, 3, 4, 4, 1, 13, 0, 1, 14, 0, 1, 15}) // tagged messages, controls
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 0 {
			tryGarbage(t, input[0], script(input[1:]))
		}
	})
}

// A script is the rest of a fuzzer's input. What is missing is 0.
type script []byte

func (s *script) byte() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *script) bytes(n int) []byte {
	b := make([]byte, n)
	*s = (*s)[copy(b, *s):]
	return b
}

// fuzzPlans are what the victim does. Guarded memory is filled by its receives.
var fuzzPlans = []func(ctx context.Context, e *Endpoint, into []byte){
	func(ctx context.Context, e *Endpoint, into []byte) { // the fast path
		for range 50 {
			receive(ctx, e, sig, hostile, into[:8])
		}
	},
	func(ctx context.Context, e *Endpoint, into []byte) { // longer messages
		for _, n := range []int{300, 3000, 100_000, 8} {
			receive(ctx, e, sig, hostile, into[:n])
		}
	},
	func(ctx context.Context, e *Endpoint, into []byte) { // combining
		for _, n := range []int{8, 1000, 150_000} {
			e.Exchange(ctx, transport.Step{Signature: sig, Recvs: []transport.Recv{{
				From: hostile, Into: into[:n:n], Held: make([]byte, n), Elem: 8,
				Combine: func(into, held, incoming []byte) {
					for i := range incoming { // as a kernel does
						into[i] = held[i] + incoming[i]
					}
				},
			}}})
		}
	},
	func(ctx context.Context, e *Endpoint, into []byte) { // sends of every protocol
		for _, n := range []int{8, 1000, 30_000, 300_000} {
			e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{hostile}, Data: into[:n]}}})
			e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{2, hostile, 3}, Data: into[:min(n, 20)]}}})
		}
	},
	func(ctx context.Context, e *Endpoint, into []byte) { // messages of another context are unexpected
		other := sig
		other.Context++
		for _, n := range []int{8, 300_000, 8} {
			receive(ctx, e, other, hostile, into[:n])
		}
		e.Release(other.Context)
		receive(ctx, e, sig, hostile, into[:300])
	},
	func(ctx context.Context, e *Endpoint, into []byte) { // tagged messages
		for range 4 {
			info, _ := e.Recv(ctx, transport.Any, transport.Match{Context: 1, Tag: transport.Any}, "bytes", into)
			if info.Size > len(into) && info.Size < 1<<20 {
				e.Recv(ctx, hostile, transport.Match{Context: 1, Tag: transport.Any}, info.Type, make([]byte, info.Size))
			}
			e.Probe(ctx, hostile, transport.Match{Context: 1}, false)
		}
	},
	func(ctx context.Context, e *Endpoint, into []byte) { // sends of tagged messages
		for _, n := range []int{8, 1000, 60_000, 200_000} {
			e.Send(ctx, hostile, transport.Match{Context: 1}, "bytes", into[:n])
		}
	},
}

// tryGarbage has the victim carry out a plan while the hostile rank follows a script.
func tryGarbage(t *testing.T, plan byte, s script) {
	before := allocated()
	ends, err := loopback(fuzzRanks, Config{NoCMA: plan&0x80 != 0, Linger: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fuzzTime)
	defer cancel()
	const guard = 4096
	memory := bytes.Repeat([]byte{0xa5}, 300_000+2*guard)
	var ranks sync.WaitGroup
	ranks.Go(func() {
		into := memory[guard : len(memory)-guard]
		fuzzPlans[int(plan&0x7f)%len(fuzzPlans)](ctx, ends[victim], into[:len(into):len(into)])
		ends[victim].CheckUnreceived()
		ends[victim].Held()
		ends[victim].Close()
	})
	for len(s) > 0 {
		follow(ctx, ends[hostile], &s, &ranks)
	}
	done := make(chan struct{})
	go func() {
		ranks.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(fuzzHangs):
		panic("a rank does not return") // with the stacks of all goroutines
	}
	for _, e := range ends {
		e.Close()
	}
	for _, b := range [][]byte{memory[:guard], memory[len(memory)-guard:]} {
		if len(bytes.TrimLeft(b, "\xa5")) > 0 {
			t.Error("the victim has written outside of the memory of its receives")
		}
	}
	if n := allocated() - before; n > fuzzMost {
		t.Errorf("%d bytes were allocated", n)
	}
}

// follow does the next thing of a script.
func follow(ctx context.Context, e *Endpoint, s *script, ranks *sync.WaitGroup) {
	sizes := []int{8, 8, 300, 1000, 3000, 30_000, 100_000, 300_000}
	switch s.byte() % 7 {
	case 0:
		time.Sleep(time.Duration(s.byte()) * 10 * time.Microsecond) // the victim may see what there is
	case 1:
		writeFrame(e, s)
	case 2:
		data := make([]byte, sizes[s.byte()%8])
		ranks.Go(func() { send2(ctx, e, data) })
	case 3:
		data := make([]byte, sizes[s.byte()%8])
		ranks.Go(func() { e.Send(ctx, victim, transport.Match{Context: 1}, "bytes", data) })
	case 4:
		into := make([]byte, sizes[s.byte()%8])
		ranks.Go(func() { receive(ctx, e, sig, victim, into) })
	case 5:
		seg := e.seg
		own := [][]byte{
			seg.mem[seg.ringOf(hostile, victim)+lineLen:][:seg.depth*lineLen],       // cells
			seg.mem[seg.ringOf(victim, hostile):][:lineLen],                         // what a receiver says
			seg.mem[seg.rankStateOf(hostile):][:unsafe.Sizeof(rankState{})],         // rank state
			seg.mem[seg.multicastOf(hostile):][:seg.multicastLen()],                 // multicast cells
			seg.mem[seg.stagingOf(hostile, 0):][:seg.stagingLen],                    // a staging buffer
			seg.mem[seg.rankStateOf(hostile):][:unsafe.Offsetof(rankState{}.calls)], // its words, the termination record
		}[s.byte()%6]
		at := int(binary.LittleEndian.Uint16(s.bytes(2))) % len(own)
		copy(own[at:], s.bytes(int(s.byte())%65))
	case 6: // wake the victim, which looks at what there is
		e.seg.rankState(victim).wake()
	}
}

// send2 sends a message to the victim and to two others.
func send2(ctx context.Context, e *Endpoint, data []byte) {
	e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{victim}, Data: data}, {To: []int{1, 2, 3}, Data: data[:8]}}})
}

// writeFrame publishes a frame whose number is right.
func writeFrame(e *Endpoint, s *script) {
	e.engine.Lock()
	defer e.unlock()
	if e.engine.Closed() {
		return
	}
	l := &e.links[victim]
	c := l.out.next()
	k, flags := frameKind(s.byte()%(uint8(pullFrame)+2)), s.byte()
	copy(c.header[:4], s.bytes(4)) // the size
	copy(c.body[:], s.bytes(int(flags&0x3f)))
	if flags&0x80 != 0 { // it belongs to the victim's call
		h := c.step()
		h.context, h.sequence, h.hash, h.multicasts = sig.Context, sig.Sequence, hashOf(sig.Call), uint32(e.out.multicast.written)
	} else {
		copy(c.header[4:], s.bytes(16))
	}
	l.publish(c, k)
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
