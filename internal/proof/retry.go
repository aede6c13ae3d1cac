package proof

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

const (
	// RetryTimeout bounds how long a dialing side whose connections are dropped tries
	// again.
	RetryTimeout = 30 * time.Second

	retryPause    = 5 * time.Millisecond // before the second attempt; then twice as long each time
	retryPauseMax = time.Second
)

// A Retry spaces attempts to connect. The zero value is ready for the first failure.
type Retry struct {
	Limit time.Duration // for how long to try again; 0 for RetryTimeout

	since time.Time // the first failure
	pause time.Duration
}

// Wait returns true when it is time for another attempt, and false when ctx has ended
// or attempts have failed for the Limit. The pauses are random, so that ranks which
// were dropped together do not come back together.
func (r *Retry) Wait(ctx context.Context) bool {
	now := time.Now()
	if r.since.IsZero() {
		r.since, r.pause = now, retryPause
	}
	if now.Sub(r.since) >= cmp.Or(r.Limit, RetryTimeout) {
		return false
	}
	pause := r.pause/2 + rand.N(r.pause)
	r.pause = min(2*r.pause, retryPauseMax)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
