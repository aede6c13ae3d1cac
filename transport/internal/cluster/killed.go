package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// RunKilled tests what the other ranks observe of a rank whose process is killed.
func RunKilled(t *testing.T, start func(t testing.TB, n int) *Cluster) {
	t.Run("WaitingForAKilledRankFails", func(t *testing.T) { testKilled(t, start) })
	t.Run("WaitingForATaggedMessageOfAKilledRankFails", func(t *testing.T) { testKilledTagged(t, start) })
	t.Run("TheFailureReachesRanksThatWaitForAnother", func(t *testing.T) { testFailurePropagates(t, start) })
}

func testKilled(t *testing.T, start func(t testing.TB, n int) *Cluster) {
	large := make([]byte, 64<<20)
	for name, step := range map[string]transport.Step{
		"receive": {Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}},
		"send":    {Sends: []transport.Send{{To: []int{1}, Data: large}}},
		"both":    {Sends: []transport.Send{{To: []int{1}, Data: large}}, Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, 2)
			c.RunAll(t, "swap", 8, 1) // connects the two
			ended := Begin(context.Background(), func(ctx context.Context) error { return c.Exchange(ctx, step) })
			c.Process(1).Kill()
			CheckPeer(t, <-ended, 1, transport.ErrLost, "")
		})
	}
}

func testKilledTagged(t *testing.T, start func(t testing.TB, n int) *Cluster) {
	c := start(t, 2)
	c.RunAll(t, "pingpong", 8, 1)
	e := c.Endpoint
	match := transport.Match{Context: 1, Tag: 7}
	received := Begin(context.Background(), func(ctx context.Context) error {
		_, err := e.Recv(ctx, 1, match, "bytes", nil)
		return err
	})
	sent := Begin(context.Background(), func(ctx context.Context) error {
		return e.Send(ctx, 1, match, "bytes", make([]byte, 1<<20))
	})
	c.Process(1).Kill()
	CheckPeer(t, <-received, 1, transport.ErrLost, "")
	CheckPeer(t, <-sent, 1, transport.ErrLost, "")
}

func testFailurePropagates(t *testing.T, start func(t testing.TB, n int) *Cluster) {
	c := start(t, 4)
	c.RunAll(t, "swap", 8, 1)
	c.StartOthers("wait", 0, 1) // for rank 0
	c.Process(1).Kill()
	err := c.Await(1)
	CheckPeer(t, err, 1, transport.ErrLost, "")
	for rank := 2; rank < 4; rank++ {
		if got, want := c.Reply(rank), fmt.Sprintf("rank 1: %v", transport.ErrLost); !strings.HasPrefix(got, want) {
			t.Errorf("rank %d got %q, want %q", rank, got, want)
		}
	}
}
