package chorale

import "context"

// NumberOf returns the number of a communicator.
func NumberOf(c *Comm) int { return int(c.identity.number) }

// UseNumbers makes c's rank use all numbers of communicators but some.
func UseNumbers(c *Comm, but ...int) {
	c.job.mu.Lock()
	defer c.job.mu.Unlock()
	n := &c.job.numbers
	n.used, n.freed = map[uint32]uint64{}, map[uint32]*identity{}
	for window := range uint32(windows) {
		n.used[window] = ^uint64(0)
	}
	for _, number := range but {
		n.drop(uint32(number/64), 1<<(number%64))
	}
}

// Abort ends c's part in the job as a failing function of Main does.
func Abort(c *Comm, reason error) { c.abort(reason) }

// Leave ends c's part in the job as Main does when the rank's function returns err.
func Leave(ctx context.Context, c *Comm, err error) error { return c.leave(ctx, err) }
