//go:build mpi

package mpi

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/transport"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbers(t, "MPI", map[string]int64{
		"headerLen": headerLen, "alignment": alignment, "TaggedMax": transport.TaggedMax, "stepEager": stepEager, "pieceMax": pieceMax, "combineMax": combineMax,
		"window": window, "piecesMax": piecesMax, "postedMax": postedMax,
		"spinTime": int64(spinTime), "yieldTime": int64(yieldTime), "napMin": int64(napMin), "napMax": int64(napMax),
		"stallTimeout": int64(stallTimeout), "failedWait": int64(failedWait),
	})
}
