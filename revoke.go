package chorale

import (
	"context"
	"errors"

	"github.com/chorale-go/chorale/transport"
)

// Revoke makes c fail on all of its ranks: calls in progress and later ones that need other
// ranks, also nonblocking and prepared ones and tagged messages, return an error that holds
// [ErrRevoked] and names this rank. Only [Comm.Agree], [Comm.Shrink] and [Comm.Grow] go on.
// Communicators that were made from c are not concerned.
//
// A call fails by itself where a rank of the communicator is lost, gives up or leaves, or
// where the context of a collective ends; Revoke is for everything else that makes ranks
// stop where others would wait for them. It does not wait for the others, who hear of it
// although some of them, this rank included, are lost meanwhile.
//
// Revoke may be called at any time, by any goroutine, and again. It returns nil if c has
// failed already, and an error if this rank's part in the job has ended, or c was freed.
// Each rank of c sends a short message to every other.
func (c *Comm) Revoke() error {
	if c == nil || c.state.Load() >= freeing {
		return c.unusable("revoke")
	}
	if err := c.job.endpointError(); err != nil {
		return c.failed("revoke", transport.Signature{}, nil, err)
	}
	c.revoke(&transport.PeerError{Peer: c.job.endpoint.Rank(), Err: transport.ErrRevoked})
	return nil
}

// revoke revokes the communicator because of an error. If another rank is its cause, the
// others are told so.
func (c *Comm) revoke(why error) {
	var peer *transport.PeerError
	if errors.As(why, &peer) {
		why = peer
	}
	c.job.endpoint.Revoke(c.identity.number, why)
	c.identity.revoked.Store(true) // a call that sees it finds the reason
}

// endpointError returns why this rank's part in the job has ended, or nil. A message to
// itself in a resilient context needs nothing but the endpoint.
func (j *job) endpointError() error {
	_, _, err := j.endpoint.Probe(context.Background(), j.endpoint.Rank(), transport.Match{Context: transport.ResilientContext(0)}, false)
	return err
}
