package inproc

import "github.com/chorale-go/chorale/transport"

// Attach implements [transport.Allocator]: the memory of all ranks is that of their
// process.
func (e *Endpoint) Attach(rank int, place uint64, n int) ([]byte, error) {
	if rank < 0 || rank >= e.Size() || rank == e.rank {
		return nil, &transport.RankError{Peer: rank, Rank: e.rank, Size: e.Size()}
	}
	return e.job.Endpoint(rank).At(place, n)
}
