package inproc

import (
	"testing"
	"time"
)

// The rank has spun for a millisecond after its first yield, and then slept.
func sleptFor(t *testing.T, asleep time.Duration) (resume time.Duration) {
	t.Helper()
	p := &spinPolicy{start: time.Now().Add(-time.Hour)}
	var b backoff
	b.begin()
	b.yieldAt = lastYield
	b.asleep = time.Hour - asleep
	b.yielded = b.asleep - time.Millisecond
	b.slept(p)
	return time.Duration(p.resume.Load())
}

func TestARankWhosePeerComputesForLongSpinsInItsNextWait(t *testing.T) {
	if resume := sleptFor(t, time.Minute); resume != 0 {
		t.Errorf("the ranks sleep at once until %v: want them to spin", resume)
	}
}

func TestRanksSleepAtOnceAfterAPeerThatMayHaveNeededTheProcessor(t *testing.T) {
	// In the future, so that the test's own time does not count.
	if resume := sleptFor(t, -time.Minute); resume < time.Hour {
		t.Errorf("the ranks sleep at once until %v: want after %v, which is now", resume, time.Hour)
	}
}
