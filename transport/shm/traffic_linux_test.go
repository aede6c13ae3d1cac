package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// hold takes away the endpoint's staging buffers, but for those that are for messages
// that were requested: every message that does not fit into a cell goes by rendezvous.
func hold(e *Endpoint) {
	e.engine.Lock()
	defer e.unlock()
	gone := &link{e: e}
	gone.out.written = 1
	gone.out.ring = e.seg.ring(e.cfg.Rank, e.cfg.Rank)
	for i := range e.out.staging[:len(e.out.staging)-stagingReserved] {
		e.out.staging[i].readers = []stagingReader{{gone, 1}}
	}
}

// A message that goes by rendezvous needs no staging buffer, but those that are kept for
// pull requests.
func TestMessagesOfManyContextsByRendezvousHoldUpNone(t *testing.T) {
	const contexts, size = 3 * rendezvousMax, 100_000
	for _, noCMA := range []bool{false, true} {
		ends := crew(t, 2, Config{NoCMA: noCMA})
		hold(ends[0])
		data := bytes.Repeat([]byte("sent"), size/4)
		sent := make(chan error)
		for c := range contexts {
			s := sig
			s.Context = uint32(c)
			go func() { sent <- send(ends[0], s, 1, data) }()
		}
		until(ends[0], func() bool { return len(ends[0].engine.Ops()) == contexts })
		for c := contexts - 1; c >= 0; c-- {
			s := sig
			s.Context = uint32(c)
			into := make([]byte, size)
			if err := receive(context.Background(), ends[1], s, 0, into); err != nil || !bytes.Equal(into, data) {
				t.Fatalf("no CMA %v, context %d: %v", noCMA, c, err)
			}
		}
		for range contexts {
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Rank 2 reads nothing of the multicast before rank 1 has all of it.
func TestAReaderThatIsLateHoldsUpNoOther(t *testing.T) {
	data := bytes.Repeat([]byte("multicast"), 1<<20)
	for _, noCMA := range []bool{false, true} {
		each(t, crew(t, 3, Config{NoCMA: noCMA}), func(e *Endpoint) error {
			second := sig
			second.Sequence++
			into := make([]byte, len(data))
			switch e.Rank() {
			case 0:
				return e.Exchange(context.Background(), transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{1, 2}, Data: data}}})
			case 1:
				err := receive(context.Background(), e, sig, 0, into)
				return errors.Join(err, send(e, sig, 2, nil))
			}
			err := receive(context.Background(), e, sig, 1, nil)
			err = errors.Join(err, receive(context.Background(), e, sig, 0, into))
			if err == nil && !bytes.Equal(into, data) {
				err = errors.New("another message arrived")
			}
			return err
		})
	}
}

// Nothing wakes a rank here that sleeps but what it sleeps for.
func TestNoRankSleepsThroughWhatItWaitsFor(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	for _, n := range []int{2, 3, 7} {
		for _, noCMA := range []bool{false, true} {
			ends := crew(t, n, Config{NoCMA: noCMA})
			for _, e := range ends {
				e.wait.stallTimeout = time.Hour
			}
			each(t, ends, func(e *Endpoint) error {
				for round := range rounds {
					if err := traffic(e, round); err != nil {
						return fmt.Errorf("%d ranks, round %d: %w", n, round, err)
					}
				}
				return nil
			})
		}
	}
}

// traffic does a step that all ranks draw from the same seed: several messages
// per pair, of the sizes at which messages change their way, some to several
// ranks, some receives in turn.
func traffic(e *Endpoint, round int) error {
	sizes := []int{0, 1, 8, multicastMax, multicastMax + 1, inlineMax, inlineMax + 1, 5000, 64 << 10, 64<<10 + 1, 300_000}
	random := rand.New(rand.NewPCG(1, uint64(round)))
	step := transport.Step{Signature: transport.Signature{Context: 1, Sequence: uint32(round), Call: "traffic"}}
	n := e.Size()
	const most = 8
	for from := range n {
		for i := range random.IntN(most) {
			send := transport.Send{Data: bytes.Repeat([]byte{byte(round + 7*from + i)}, sizes[random.IntN(len(sizes))])}
			for to := range n {
				sent, inTurn := random.IntN(2) == 0, random.IntN(4) == 0
				if to == from || !sent {
					continue
				}
				send.To = append(send.To, to)
				if to == e.Rank() {
					step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: make([]byte, len(send.Data)), Ordered: inTurn})
				}
			}
			if from == e.Rank() {
				step.Sends = append(step.Sends, send)
			}
		}
	}
	if err := e.Exchange(context.Background(), step); err != nil {
		return err
	}
	// Each sender numbers its messages; those for this rank are in order.
	seen := map[int]int{}
	for _, r := range step.Recvs {
		if len(r.Into) == 0 {
			continue
		}
		k := int(r.Into[0]-byte(round+7*r.From)) & 0xff
		if k < seen[r.From] || k >= most || bytes.Count(r.Into, r.Into[:1]) != len(r.Into) {
			return fmt.Errorf("message %d came from rank %d after message %d", k, r.From, seen[r.From])
		}
		seen[r.From] = k
	}
	return nil
}

func TestAMessageWhoseMemoryCannotBeReadIsRequested(t *testing.T) {
	ends := job(t, 2)
	needCMA(t, &ends[0].links[1])
	hold(ends[0])
	ends[0].state.cma.value.Add(2) // so that reading it seems to bring something else
	data := bytes.Repeat([]byte("denied"), 100_000)
	sent := make(chan error)
	go func() { sent <- send(ends[0], sig, 1, data) }()
	into := make([]byte, len(data))
	if err := receive(context.Background(), ends[1], sig, 0, into); err != nil || !bytes.Equal(into, data) {
		t.Errorf("another message arrived, or %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if ends[0].CMADenied() || !ends[1].CMADenied() {
		t.Errorf("denied %v, %v, want only rank 1 to be", ends[0].CMADenied(), ends[1].CMADenied())
	}
}

// Rank 4 is in no multicast for long, and then gets some between other messages.
func TestMulticastsAndOtherMessagesStayInOrder(t *testing.T) {
	const rounds = 50 * multicastDepth
	each(t, job(t, 5), func(e *Endpoint) error {
		s := sig
		word := make([]byte, 2)
		for round := range rounds {
			late := round%(3*multicastDepth) == 3*multicastDepth-1
			switch {
			case e.Rank() == 0 && late:
				// Four messages to rank 4, of which the second and fourth are multicasts.
				step := transport.Step{Signature: s}
				for i, to := range [][]int{{4}, {1, 3, 4}, {4, 2}, {4, 1, 2, 3}} {
					step.Sends = append(step.Sends, transport.Send{To: to, Data: []byte{byte(i), byte(round)}})
				}
				if err := e.Exchange(context.Background(), step); err != nil {
					return err
				}
			case e.Rank() == 0:
				step := transport.Step{Signature: s, Sends: []transport.Send{{To: []int{1, 2, 3}, Data: []byte{9, byte(round)}}}}
				if err := e.Exchange(context.Background(), step); err != nil {
					return err
				}
			default:
				want := map[int][]byte{1: {1, 3}, 2: {2, 3}, 3: {1, 3}, 4: {0, 1, 2, 3}}[e.Rank()]
				if !late {
					want = []byte{9}
				}
				for _, w := range want {
					if e.Rank() == 4 && !late {
						continue
					}
					if err := receive(context.Background(), e, s, 0, word); err != nil {
						return err
					}
					if word[0] != w || word[1] != byte(round) {
						return fmt.Errorf("round %d: got message %d of round %d, want %d", round, word[0], word[1], w)
					}
				}
			}
			s.Sequence++
		}
		return nil
	})
}
