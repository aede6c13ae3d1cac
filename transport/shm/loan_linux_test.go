package shm

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// Rank 0 can read the memory of rank 1, and lends, but not the other way round.
func TestMoreMessagesAreLentThanAReceiverCanAskFor(t *testing.T) {
	ends := job(t, 2)
	ends[0].crowded = false
	ends[1].cfg.Apart = true
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	each(t, ends, func(e *Endpoint) error {
		step := transport.Step{Signature: sig}
		into := make([][]byte, wantsMost+1)
		for i := range into {
			data := bytes.Repeat([]byte{byte(i)}, lendMin)
			if e.Rank() == 0 {
				step.Sends = append(step.Sends, transport.Send{To: []int{1}, Data: data})
				continue
			}
			into[i] = data
			clear(data)
			step.Recvs = append(step.Recvs, transport.Recv{From: 0, Into: data})
		}
		err := e.Exchange(ctx, step)
		for i, p := range into {
			if err == nil && e.Rank() == 1 && bytes.Count(p, []byte{byte(i)}) != lendMin {
				err = errors.New("another message arrived")
			}
		}
		return err
	})
}

// The second time, rank 2 cannot read the memory of rank 0, and asks for it.
func TestWhatIsLentToSeveralReachesAllOfThem(t *testing.T) {
	for _, apart := range []int{0, 2} { // 2 cannot read the memory of 0
		ends := job(t, 4)
		if apart > 0 {
			ends[apart].cfg.Apart = true
		}
		want := bytes.Repeat([]byte("several."), lendMany/4)
		each(t, ends, func(e *Endpoint) error {
			step := transport.Step{Signature: sig}
			if e.Rank() == 0 {
				step.Sends = []transport.Send{{To: []int{1, 2, 3}, Data: want}}
				if err := e.Exchange(t.Context(), step); err != nil {
					return err
				}
				if lent := e.lender.regions != [256]region{}; !lent {
					return errors.New("nothing was lent")
				}
				return nil
			}
			got := make([]byte, len(want))
			step.Recvs = []transport.Recv{{From: 0, Into: got}}
			err := e.Exchange(t.Context(), step)
			if err == nil && !bytes.Equal(got, want) {
				err = errors.New("another message arrived")
			}
			return err
		})
	}
}

func TestARankThatIsJustJoiningIsNotOutOfReach(t *testing.T) {
	ends := job(t, 2)
	l := &ends[0].links[1]
	word := l.seat.word.Swap(0) // as before New has written it
	l.reaches()
	l.seat.word.Store(word)
	if !l.reaches() && !ends[0].denied {
		t.Error("rank 0 never tries whether it can read the memory of rank 1")
	}
}
