package chorale

import "github.com/chorale-go/chorale/transport"

// Kept returns how many calls c remembers.
func Kept(c *Comm) int { return len(c.calls) }

// NewComm returns the communicator of all ranks over an endpoint.
func NewComm(ep transport.Endpoint, name string) *Comm { return newComm(ep, name, 0) }

// Abort ends c's part in the job as a failing function of Main does.
func Abort(c *Comm, why error) { c.abort(why) }
