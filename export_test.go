package chorale

// Kept returns the number of calls that c caches.
func Kept(c *Comm) int { return len(c.cache.calls) }

// Abort ends c's part in the job as a failing function of Main does.
func Abort(c *Comm, reason error) { c.abort(reason) }
