package shm

import (
	"context"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

func TestWhatNoRankWritesEndsInAnError(t *testing.T) {
	exchange := func(ctx context.Context, e *Endpoint) error { return receive(ctx, e, sig, 0, make([]byte, 1000)) }
	take := func(ctx context.Context, e *Endpoint) error {
		_, err := e.Recv(ctx, 0, transport.Match{Context: 1, Tag: transport.Any}, "", nil)
		return err
	}
	reply := func(ctx context.Context, e *Endpoint) error {
		hold(e)
		return e.Exchange(ctx, transport.Step{Signature: sig, Sends: []transport.Send{{To: []int{0}, Data: make([]byte, 1000)}}})
	}
	for name, c := range map[string]struct {
		does func(context.Context, *Endpoint) error // what rank 1 does
		k    kind                                   // of the frame
		size uint32
		p    parcel
	}{
		"a line longer than its slot":          {exchange, data, 1000, parcel{}},
		"a cast in the lane":                   {exchange, cast, 8, parcel{}},
		"a message of a negative length":       {take, boxed, 0, parcel{total: 1 << 63}},
		"a message longer than any memory":     {take, lent, 0, parcel{total: 1<<47 + 1}},
		"a piece outside of its box":           {exchange, boxed, 1 << 30, parcel{total: 1000}},
		"a box that there is not":              {exchange, boxed, 8, parcel{total: 1000, box: 1 << 30}},
		"more of a message that has not begun": {exchange, more, 8, parcel{total: 1000, number: 5}},
		"a letter of a negative length":        {take, offer, 0, parcel{total: 1 << 63}},
		"a letter longer than its box":         {take, postBoxed, 1 << 20, parcel{}},
		"letters taken of a negative length":   {take, taken, 0, parcel{total: 1 << 63}},
		"a frame of no kind":                   {exchange, taken + 1, 0, parcel{}},
		"wishes without end":                   {reply, 0, 0, parcel{}},
	} {
		t.Run(name, func(t *testing.T) {
			ends := job(t, 2)
			l := &ends[0].links[1]
			s := l.blank()
			s.size, s.context, s.sequence, s.call = c.size, sig.Context, sig.Sequence, uint64(hashOf(sig.Call))
			if !c.k.begins() {
				s.sequence = 0
			}
			*s.parcel() = c.p
			if c.k != 0 {
				l.write(s, c.k)
			} else { // it has taken the frame to come
				l.in.wants.Store(1 << 31)
				l.in.taken.Store(1)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			checkLost(t, c.does(ctx, ends[1]), 0, "carries what no rank writes")
		})
	}
}

func TestCastsThatNoRankWritesEndInAnError(t *testing.T) {
	ends := job(t, 4)
	for i, number := range []uint64{18, 35, 9} { // each would lead to another
		s := castSlot(ends[0].caster.slots, uint64(i))
		s.readers().Store(1 << 2)
		s.number().Store(number)
		s.turn.Store(turn(uint32(number), cast))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	checkLost(t, receive(ctx, ends[1], sig, 0, nil), 0, "carries what no rank writes")
}
