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
