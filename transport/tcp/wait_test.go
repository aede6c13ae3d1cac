package tcp

import (
	"context"
	"testing"
)

func TestALinkThatNoOperationWaitsForIsNotWatched(t *testing.T) {
	ends := job(t, 2)
	each(t, ends, func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
	ends[0].engine.Lock()
	defer ends[0].engine.Unlock()
	for _, l := range ends[0].links {
		if l != nil && l.want != 0 {
			t.Errorf("after its last message, the link to rank %d still counts as watched for %d", l.peer, l.want)
		}
	}
}
