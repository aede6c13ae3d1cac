package launch

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRanksThatWaitForEachOtherAreNamedOnce(t *testing.T) {
	for _, name := range []string{"auto", "tcp"} {
		t.Run(name, func(t *testing.T) {
			stdin, release := io.Pipe()
			cfg := config(t, 2, "swap")
			r := new(result)
			cfg.Transport, cfg.Stall = name, 60*time.Millisecond
			cfg.Stdin, cfg.Stdout, cfg.Stderr = stdin, &r.out, &r.err
			done := make(chan error)
			go func() { done <- Run(t.Context(), cfg) }()
			// In brackets there is the line, which is one of the test's main package here.
			const want = `rank 0 waits for rank 1 in call 0 of communicator 1, "swapped" \(.*\); rank 1 waits for rank 0 in call 0 of communicator 2, "swapped" \(.*\)\.`
			reports := func() int { return len(regexp.MustCompile(want).FindAllString(r.err.String(), -1)) }
			for deadline := time.Now().Add(20 * time.Second); reports() == 0 && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(3 * cfg.Stall) // another report would come
			release.Close()
			if err := <-done; err == nil {
				t.Error("the job ended well")
			}
			if n := reports(); n != 1 {
				t.Errorf("%d reports in %q, want 1 with %s", n, r.err.String(), want)
			}
		})
	}
}

func TestRanksThatTakeTurnsAreInNoDeadlock(t *testing.T) {
	for _, name := range []string{"shm", "tcp"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, 2, "turns", "100")
			r := new(result)
			cfg.Transport, cfg.Stall = name, 90*time.Millisecond
			cfg.Stdout, cfg.Stderr = &r.out, &r.err
			if err := Run(t.Context(), cfg); err != nil || strings.Contains(r.err.String(), "wait for each other") {
				t.Errorf("%v, %q", err, r.err.String())
			}
		})
	}
}
