//go:build unix

package launch

import (
	"testing"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "security.md", "Bounds", map[string]int64{
		"UnprovenMax": proof.UnprovenMax, "Timeout": int64(proof.Timeout), "RetryTimeout": int64(proof.RetryTimeout),
		"JoinTimeout": int64(control.JoinTimeout), "MaxMessage": control.MaxMessage, "WriteTimeout": int64(control.WriteTimeout),
		"rankDescriptors": rankDescriptors, "spareDescriptors": spareDescriptors,
	})
	pagetest.CheckNumbersOf(t, "bounds.md", "Between a launcher and its agents", map[string]int64{
		"MaxFrame": remote.MaxFrame, "StreamWindow": remote.StreamWindow, "MaxHello": remote.MaxHello, "MaxOrders": remote.MaxOrders,
		"maxWords": maxWords, "maxPendingSignals": maxPendingSignals,
	})
	pagetest.CheckNumbersOf(t, "cluster.md", "Launchers", map[string]int64{"AssembleTimeout": int64(control.AssembleTimeout), "minToken": minToken}, "90s", "30s")
	pagetest.CheckNumbersOf(t, "cluster.md", "When a rank fails", map[string]int64{
		"EndTimeout": int64(control.EndTimeout), "LossTimeout": int64(network.LossTimeout),
	}, "1 s", "2 s", "30 s") // of a poll in shared memory, of mpirun, and of Slurm
	pagetest.CheckNumbersOf(t, "cluster.md", "Going on without a lost rank", map[string]int64{
		"NewcomerTimeout": int64(NewcomerTimeout), "lossTime": int64(lossTime),
	})
	pagetest.CheckNumbersOf(t, "cluster.md", "What goes over ssh", map[string]int64{
		"maxReaching": maxReaching, "MaxHello": remote.MaxHello, "MaxOrders": remote.MaxOrders, "MaxFrame": remote.MaxFrame, "StreamWindow": remote.StreamWindow,
	})
	pagetest.CheckNumbersOf(t, "cluster.md", "When ssh breaks", map[string]int64{
		"maxAttempts": maxAttempts, "helloTimeout": int64(helloTimeout), "aliveInterval": int64(aliveInterval),
		"aliveTimeout": int64(aliveTimeout), "hostKillTimeout": int64(hostKillTimeout), "dropTimeout": int64(dropTimeout), "LossTimeout": int64(network.LossTimeout),
	}, "10 s") // silentIntervals of aliveInterval
}
