// Package testenv decides what a test does that lacks something of its environment,
// such as a program that it runs, finds free ports, and goroutines that tests
// leave behind.
package testenv

import (
	"os"
	"testing"
)

// requireAll is the environment variable that turns a skipped test into a failure.
// .ci/run sets it.
const requireAll = "CHORALE_REQUIRE_ALL"

// Skip skips the test, because the machine lacks something that CI provides. If
// CHORALE_REQUIRE_ALL is set, the test fails instead.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(requireAll) != "" {
		t.Fatalf(requireAll+" is set, and "+format, args...)
	}
	t.Skipf(format, args...)
}
