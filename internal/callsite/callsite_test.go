package callsite

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestTheLineIsTheInnermostOneOutsideOfTheLibrary(t *testing.T) {
	_, _, here, _ := runtime.Caller(0)
	got := func() string { return Line() }()
	if want := fmt.Sprintf("callsite/callsite_test.go:%d", here+1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func deep(n int) string {
	if n == 0 {
		return Line()
	}
	return deep(n-1) + ""
}

func TestGosOwnPackagesAreNoPlace(t *testing.T) {
	here := func(function, file string, want bool) {
		t.Helper()
		if got := inStandard(function, file); got != want {
			t.Errorf("%s in %s: of Go's own packages %v, want %v", function, file, got, want)
		}
	}
	pc, file, _, _ := runtime.Caller(1) // package testing
	here(runtime.FuncForPC(pc).Name(), file, true)
	_, file, _, _ = runtime.Caller(0)
	here("main.main", file, false)
}

func TestALineIsFoundBelowManyCalls(t *testing.T) {
	if got := deep(100); !strings.HasPrefix(got, "callsite/callsite_test.go:") {
		t.Errorf("got %q", got)
	}
}

func TestOnlyTheLibrarysOwnFilesAreIt(t *testing.T) {
	for file, want := range map[string]bool{
		"call.go":                      true,
		"transport/inproc/endpoint.go": true,
		"internal/exec/run.go":         true,
		"call_test.go":                 false,
		"examples/server/server.go":    false,
		"cmd/chorale/main.go":          false,
		"internal/bench/loop.go":       false,
		"mine/main.go":                 false,
	} {
		if got := inLibrary(root() + file); got != want {
			t.Errorf("%s: in the library %v, want %v", file, got, want)
		}
		if inLibrary("/elsewhere/" + file) {
			t.Errorf("%s of another module is in the library", file)
		}
	}
}
