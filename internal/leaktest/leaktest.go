// Package leaktest finds goroutines that tests leave behind, also on a busy machine.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakTime is for how long goroutines may end. Package goleak waits for half a second by
// itself, in which a thread of a busy machine may not run.
const leakTime = 10 * time.Second

// Find returns an error that lists the goroutines that do not end.
func Find(options ...goleak.Option) error { return findWithin(leakTime, options) }

func findWithin(limit time.Duration, options []goleak.Option) error {
	for late := time.Now().Add(limit); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(late) {
			return err
		}
	}
}

// VerifyTestMain is for TestMain: it runs the tests, and ends the process. If the tests leave
// goroutines behind, they have failed.
func VerifyTestMain(m *testing.M) {
	status := m.Run()
	if status == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, "the tests pass, but", err)
			status = 1
		}
	}
	os.Exit(status)
}
