package progress

import (
	"runtime"
	"sync/atomic"

	"github.com/chorale-go/chorale/internal/processors"
)

// Processors says how the ranks of this machine share its processors.
type Processors struct {
	Oversubscribed bool // there are fewer processors than ranks
	RanksPerCore   int  // at most
	threads        int32
	openEndpoints  *atomic.Int32
}

// Share returns how the ranks on this machine share its processors. Local is the
// number of those ranks. OpenEndpoints counts the open endpoints of a transport in
// this process.
func Share(local int, openEndpoints *atomic.Int32) Processors {
	n := processors.Available()
	return Processors{
		Oversubscribed: local > n,
		RanksPerCore:   (local + n - 1) / n,
		threads:        int32(runtime.GOMAXPROCS(0)),
		openEndpoints:  openEndpoints,
	}
}

// MaySpin reports whether a waiting rank may keep its thread for a moment: not if
// other ranks of this process need it.
func (p *Processors) MaySpin() bool {
	here := p.openEndpoints.Load()
	return here <= 1 || here <= p.threads && !p.Oversubscribed
}
