package testenv

import "testing"

// A recorder records whether it is skipped or fails.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed, r.TB = true, nil; panic(r) }

func TestASkipIsAFailureInCI(t *testing.T) {
	t.Setenv(requireAll, "")
	r := &recorder{TB: t}
	if Skip(r, "no browser"); !r.skipped || r.failed {
		t.Errorf("by default: skipped %v, failed %v; want it skipped", r.skipped, r.failed)
	}
	t.Setenv(requireAll, "1")
	r = &recorder{TB: t}
	defer func() {
		if recover(); r.skipped || !r.failed {
			t.Errorf("in CI: skipped %v, failed %v; want it failed", r.skipped, r.failed)
		}
	}()
	Skip(r, "no browser")
}
