//go:build unix

package tcp

import (
	"testing"

	"github.com/chorale-go/chorale/transport/internal/cluster"
)

func TestAStoppedRankIsWaitedFor(t *testing.T) {
	t.Parallel() // it sleeps
	cluster.RunStopped(t, processes)
}
