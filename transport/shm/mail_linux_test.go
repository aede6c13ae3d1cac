package shm

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// stamp is that of most letters.
var stamp = transport.Stamp{Context: 1, Tag: 7}

func postLetter(e *Endpoint, to int, data []byte) error {
	return e.Post(context.Background(), to, stamp, "bytes", data)
}

// takeLetter takes a letter and compares it.
func takeLetter(e *Endpoint, from int, want []byte) error {
	into := make([]byte, len(want))
	env, err := e.Take(context.Background(), from, stamp, "bytes", into)
	if err != nil {
		return err
	}
	if env.Size != len(want) || !bytes.Equal(into, want) {
		return fmt.Errorf("rank %d took %+v, not the letter that it wants", e.Rank(), env)
	}
	return nil
}

// numbered is a letter that differs from others.
func numbered(n, size int) []byte { return bytes.Repeat([]byte{byte(n), byte(n >> 8)}, size/2) }

// lends reports whether a long letter to rank 1 awaits its taker.
func lends(e *Endpoint) func() bool {
	return func() bool { return len(e.links[1].offered) > 0 }
}

func TestAKilledRankPostsNoMore(t *testing.T) {
	job := processes(t, 2)
	job.perform(t, "swap", 8, 1)
	e := job.Endpoint.(*Endpoint)
	took, posted := make(chan error), make(chan error)
	go func() { took <- takeLetter(e, 1, nil) }()
	go func() { posted <- postLetter(e, 1, make([]byte, 1<<20)) }()
	until(e, lends(e))
	job.ranks[0].Process.Kill()
	checkPeer(t, <-took, 1, transport.ErrLost, "")
	checkPeer(t, <-posted, 1, transport.ErrLost, "")
}
