package stage

import (
	"context"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// RunKilled tests what the others hear of a rank whose process is killed.
func RunKilled(t *testing.T, start func(t testing.TB, n int) *Troupe) {
	t.Run("AKilledRankIsLostToWhoWaitsForIt", func(t *testing.T) { testKilled(t, start) })
	t.Run("AKilledRankPostsNoMore", func(t *testing.T) { testPostsNoMore(t, start) })
	t.Run("AFailureTravelsToWhoWaits", func(t *testing.T) { testFailureTravels(t, start) })
}

func testKilled(t *testing.T, start func(t testing.TB, n int) *Troupe) {
	large := make([]byte, 64<<20)
	for name, step := range map[string]transport.Step{
		"receive": {Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}},
		"send":    {Sends: []transport.Send{{To: []int{1}, Data: large}}},
		"both":    {Sends: []transport.Send{{To: []int{1}, Data: large}}, Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			job := start(t, 2)
			job.Perform(t, "swap", 8, 1) // they are connected
			time.AfterFunc(moment, func() { job.Process(1).Kill() })
			CheckPeer(t, job.Exchange(context.Background(), step), 1, transport.ErrLost, "")
		})
	}
}

func testPostsNoMore(t *testing.T, start func(t testing.TB, n int) *Troupe) {
	job := start(t, 2)
	job.Perform(t, "ping", 8, 1)
	e := job.Endpoint
	stamp := transport.Match{Context: 1, Tag: 7}
	ended := make(chan error, 2)
	go func() {
		_, err := e.Recv(context.Background(), 1, stamp, "bytes", nil)
		ended <- err
	}()
	go func() { ended <- e.Send(context.Background(), 1, stamp, "bytes", make([]byte, 1<<20)) }()
	time.Sleep(moment)
	job.Process(1).Kill()
	for range cap(ended) {
		CheckPeer(t, <-ended, 1, transport.ErrLost, "")
	}
}

func testFailureTravels(t *testing.T, start func(t testing.TB, n int) *Troupe) {
	job := start(t, 4)
	job.Perform(t, "swap", 8, 1)
	job.Order("wait", 0, 1) // for rank 0
	job.Process(1).Kill()
	err := job.Await(1)
	CheckPeer(t, err, 1, transport.ErrLost, "")
	for rank := 2; rank < 4; rank++ {
		if got, want := job.Says(rank), "rank 0: the rank gave up: "+err.Error(); got != want {
			t.Errorf("rank %d got %q, want %q", rank, got, want)
		}
	}
}
