package chorale

import "context"

// Kept returns the number of calls that c caches.
func Kept(c *Comm) int { return len(c.cache.calls) }

// Abort ends c's part in the job as a failing function of Main does.
func Abort(c *Comm, reason error) { c.abort(reason) }

// Leave ends c's part in the job as Main does when the rank's function returns err.
func Leave(ctx context.Context, c *Comm, err error) error { return c.leave(ctx, err) }
