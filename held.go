package chorale

import "github.com/chorale-go/chorale/transport"

// Held is what a communicator keeps for later calls, those of its nonblocking and
// prepared calls included, and what the endpoint holds of messages of all
// communicators of the rank.
type Held struct {
	// Calls is the number of compiled calls. They are [KeptCalls] at most, so many
	// again for each prepared call and for each of the first 16 nonblocking calls, and
	// three of Split.
	Calls int
	// Programs is about how many bytes the compiled calls take: [KeptBytes] at most,
	// or what the largest takes, and so many again as for Calls.
	Programs int
	// Memory is the bytes of memory that calls compute in: what the largest call has
	// needed, and 1/16 more, and so many again as for Calls. A call needs at most a few
	// times the bytes of its vectors. With it come up to 4 memories of calls on strided
	// views, each of the elements of the longest view packed there so far.
	Memory int
	// Endpoint is what the rank's endpoint holds of messages. Package transport names
	// the bounds.
	Endpoint transport.Held
}

// Held returns what the communicator keeps and its endpoint holds. It may be called at
// any time. A freed communicator keeps nothing.
func (c *Comm) Held() Held {
	if c == nil {
		return Held{}
	}
	kept := &c.identity.kept
	return Held{
		Calls:    int(kept.calls.Load()),
		Programs: int(kept.programs.Load()),
		Memory:   int(kept.memory.Load()),
		Endpoint: c.job.endpoint.Held(),
	}
}
