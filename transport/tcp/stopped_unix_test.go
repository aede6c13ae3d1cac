//go:build unix

package tcp

import (
	"testing"

	"github.com/chorale-go/chorale/transport/internal/cluster"
)

func TestAStoppedRankIsWaitedFor(t *testing.T) { cluster.RunStopped(t, processes) }
