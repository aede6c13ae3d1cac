package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// dataClaims: a message arrives as it was sent.
var dataClaims = []claim{
	{"EveryEndpointKnowsItsRankAndSize", testRanks},
	{"AnEmptyStepCompletes", testEmptyStep},
	{"MessagesOfEverySizeArrive", testSizes},
	{"AMulticastReachesEveryRankListed", testMulticast},
	{"SentMemoryMayBeWrittenAfterExchange", testReuse},
	{"AllPairsExchangeAtOnce", testAllPairs},
	{"AllRanksMaySendFirst", testSendFirst},
	{"LargeMessagesCross", testSwapLarge},
	{"RandomTrafficArrives", testRandomTraffic},
}

func testRanks(t *testing.T, start Start) {
	for _, n := range []int{1, 2, 5} {
		j := open(t, start, n)
		for rank, e := range j.ends {
			if e.Rank() != rank || e.Size() != n {
				t.Errorf("endpoint %d of %d returns rank %d and size %d", rank, n, e.Rank(), e.Size())
			}
		}
	}
}

func testEmptyStep(t *testing.T, start Start) {
	open(t, start, 1).each(func(ctx context.Context, e transport.Endpoint) error {
		return e.Exchange(ctx, transport.Step{Signature: sig})
	})
	open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
		return e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{Data: []byte("no receiver")}}})
	})
}

func testSizes(t *testing.T, start Start) {
	sizes := []int{0, 1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1<<20 + 3}
	if !testing.Short() {
		sizes = append(sizes, 64<<20)
	}
	j := open(t, start, 2)
	for _, size := range sizes {
		want := pattern(make([]byte, size), size)
		into := make([]byte, size+2) // a guard byte on either side
		into[0], into[size+1] = 0xa5, 0x5a
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			if e.Rank() == 0 {
				return send(ctx, e, sig, 1, want)
			}
			if err := recv(ctx, e, sig, 0, into[1:1+size]); err != nil {
				return err
			}
			if !bytes.Equal(into[1:1+size], want) {
				return fmt.Errorf("a message of %d bytes arrived changed", size)
			}
			if into[0] != 0xa5 || into[size+1] != 0x5a {
				return fmt.Errorf("the receive of %d bytes wrote outside of Into", size)
			}
			return nil
		})
	}
}

func testMulticast(t *testing.T, start Start) {
	const n = 5
	j := open(t, start, n)
	for _, size := range []int{0, 1, 100, 300_001} {
		data := pattern(make([]byte, size), size)
		j.each(func(ctx context.Context, e transport.Endpoint) error {
			if e.Rank() == 2 {
				return e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{
					{To: []int{4, 0, 1, 3}, Data: data},
					{To: []int{3, 0}, Data: data[:size/2]},
				}})
			}
			whole, half := make([]byte, size), make([]byte, size/2)
			step := transport.Step{Signature: sig, Recvs: []transport.Recv{{From: 2, Into: whole}}}
			if e.Rank() == 0 || e.Rank() == 3 {
				step.Recvs = append(step.Recvs, transport.Recv{From: 2, Into: half})
			} else {
				half = data[:size/2]
			}
			if err := e.Exchange(ctx, step); err != nil {
				return err
			}
			if !bytes.Equal(whole, data) || !bytes.Equal(half, data[:size/2]) {
				return fmt.Errorf("a multicast of %d bytes arrived changed", size)
			}
			return nil
		})
	}
}

func testReuse(t *testing.T, start Start) {
	for _, size := range []int{8, 1000, 100_000} {
		open(t, start, 2).each(func(ctx context.Context, e transport.Endpoint) error {
			buf := make([]byte, size)
			for round := range 50 {
				if e.Rank() == 0 {
					fill(buf, byte(round))
					if err := send(ctx, e, sig, 1, buf); err != nil {
						return err
					}
					continue
				}
				if err := recv(ctx, e, sig, 0, buf); err != nil {
					return err
				}
				if bytes.Count(buf, []byte{byte(round)}) != size {
					return fmt.Errorf("message %d of %d bytes arrived changed", round, size)
				}
			}
			return nil
		})
	}
}

func testAllPairs(t *testing.T, start Start) {
	const n, size = 8, 777
	open(t, start, n).each(func(ctx context.Context, e transport.Endpoint) error {
		for round := range 20 {
			step := transport.Step{Signature: sig}
			step.Signature.Sequence = uint32(round)
			for d := 1; d < n; d++ {
				to, from := (e.Rank()+d)%n, (e.Rank()+n-d)%n
				data := pattern(make([]byte, size), round*n*n+e.Rank()*n+to)
				step.Sends = append(step.Sends, transport.Send{To: []int{to}, Data: data})
				step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: make([]byte, size)})
			}
			if err := e.Exchange(ctx, step); err != nil {
				return err
			}
			for _, r := range step.Recvs {
				if want := pattern(make([]byte, size), round*n*n+r.From*n+e.Rank()); !bytes.Equal(r.Into, want) {
					return fmt.Errorf("round %d: the message from rank %d is not the one sent", round, r.From)
				}
			}
		}
		return nil
	})
}

func testSendFirst(t *testing.T, start Start) {
	const n = 8
	size := 16 << 20
	if testing.Short() {
		size = 2 << 20
	}
	data := pattern(make([]byte, size), 1)
	open(t, start, n).each(func(ctx context.Context, e transport.Endpoint) error {
		// Every rank of a ring sends before it receives. No transport has room
		// for all of this.
		into := make([]byte, size)
		err := e.Exchange(ctx, transport.Step{
			Signature: sig,
			Sends:     []transport.Send{{To: []int{(e.Rank() + 1) % n}, Data: data}},
			Recvs:     []transport.Recv{{From: (e.Rank() + n - 1) % n, Into: into}},
		})
		if err == nil && !bytes.Equal(into, data) {
			err = errors.New("the message arrived changed")
		}
		return err
	})
}

// testSwapLarge has pairs of ranks fill both directions between them. No transport
// has room for this either.
func testSwapLarge(t *testing.T, start Start) {
	size := 64 << 20
	if testing.Short() || UnderRace {
		size = 4 << 20
	}
	data := pattern(make([]byte, size), 2)
	open(t, start, 8).each(func(ctx context.Context, e transport.Endpoint) error {
		into := make([]byte, size)
		peer := e.Rank() ^ 1
		err := e.Exchange(ctx, transport.Step{
			Signature: sig,
			Sends:     []transport.Send{{To: []int{peer}, Data: data}},
			Recvs:     []transport.Recv{{From: peer, Into: into}},
		})
		if err == nil && !bytes.Equal(into, data) {
			err = errors.New("the message arrived changed")
		}
		return err
	})
}

// testRandomTraffic has every rank generate the same traffic from one seed: up to
// three messages per pair and step.
func testRandomTraffic(t *testing.T, start Start) {
	const n, rounds = 5, 60
	open(t, start, n).each(func(ctx context.Context, e transport.Endpoint) error {
		r := rand.New(rand.NewPCG(1, 2))
		for round := range rounds {
			step := transport.Step{Signature: transport.Signature{Context: 7, Sequence: uint32(round), Call: "random"}}
			var want [][]byte
			for from := range n {
				for to := range n {
					for range r.IntN(4) {
						size, seed := r.IntN(1<<r.IntN(15)), r.Int()
						switch {
						case from == to:
						case from == e.Rank():
							step.Sends = append(step.Sends, transport.Send{To: []int{to}, Data: pattern(make([]byte, size), seed)})
						case to == e.Rank():
							step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: make([]byte, size)})
							want = append(want, pattern(make([]byte, size), seed))
						}
					}
				}
			}
			if err := e.Exchange(ctx, step); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			for i, recv := range step.Recvs {
				if !bytes.Equal(recv.Into, want[i]) {
					return fmt.Errorf("round %d: receive %d, from rank %d, got the wrong message", round, i, recv.From)
				}
			}
		}
		return nil
	})
}

func fill(b []byte, x byte) {
	for i := range b {
		b[i] = x
	}
}
