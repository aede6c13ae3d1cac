package chorale

import (
	"context"
	"reflect"

	"github.com/chorale-go/chorale/internal/callsite"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
)

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

// LateCalls returns how many calls of c's job were started, and nobody may have waited for.
func LateCalls(c *Comm) int {
	c.job.late.mu.Lock()
	defer c.job.late.mu.Unlock()
	return len(c.job.late.calls)
}

// Abort ends c's part in the job as a failing function of Main does.
func Abort(c *Comm, reason error) { c.job.endpoint.Abort(reason) }

// Leave ends c's part in the job as Main does when the rank's function returns err.
func Leave(ctx context.Context, c *Comm, err error) error { return c.leave(ctx, err) }

// MaxRows is how many lines of a program a profile tells apart.
const MaxRows = maxRows

// RecordPlaces records a barrier at each of so many lines of a program, which are those of a
// function and the ones after it, and returns the profile.
func RecordPlaces(function any, lines int) *Profile {
	type place struct {
		file string
		line int
	}
	r, seen := newRecorder(), map[place]bool{}
	for pc := reflect.ValueOf(function).Pointer() + 1; len(seen) < lines; pc++ {
		at := site{callers{pc}, "barrier"}
		file, line := callsite.Of(at.stack[:1])
		if seen[place{file, line}] || file == "" {
			continue
		}
		seen[place{file, line}] = true
		r.mu.Lock()
		row := r.row(at) // may be a new one
		r.rows[row].Calls++
		r.mu.Unlock()
	}
	var p Profile
	p.fill([]*recorder{r})
	return &p
}

// OverEndpoint returns c with another endpoint, for its calls and all communicators made
// from it.
func OverEndpoint(c *Comm, wrap func(transport.Endpoint) transport.Endpoint) *Comm {
	c.job.endpoint = wrap(c.job.endpoint)
	return c
}

// InLaunch returns c as a job of a launcher that starts ranks anew: env says what launch would.
func InLaunch(c *Comm, env launch.JobEnv) *Comm {
	c.job.env = env
	return c
}
