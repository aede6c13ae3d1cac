package launch

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
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
			const want = `rank 0 waits for rank 1 in call 0 of communicator 1, "swapped"; rank 1 waits for rank 0 in call 0 of communicator 2, "swapped".`
			for deadline := time.Now().Add(20 * time.Second); !strings.Contains(r.err.String(), want) && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(3 * cfg.Stall) // another report would come
			release.Close()
			if err := <-done; err == nil {
				t.Error("the job ended well")
			}
			if n := strings.Count(r.err.String(), want); n != 1 {
				t.Errorf("%d reports in %q, want 1 with %s", n, r.err.String(), want)
			}
		})
	}
}

func TestRanksOfOneProcessThatWaitForEachOtherAreNamed(t *testing.T) {
	job := inproc.New(2)
	endpoints := []transport.Endpoint{job.Endpoint(0), job.Endpoint(1)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var ranks sync.WaitGroup
	for rank, e := range endpoints {
		ranks.Go(func() {
			e.Exchange(ctx, transport.Step{
				Signature: transport.Signature{Context: uint32(rank), Call: "swapped"},
				Recvs:     []transport.Recv{{From: 1 - rank, Into: make([]byte, 8)}},
			})
		})
	}
	var text string
	WatchDeadlocks(ctx.Done(), 30*time.Millisecond, endpoints, func(report string) {
		text = report
		cancel()
	})
	ranks.Wait()
	if !strings.Contains(text, "rank 1 waits for rank 0") {
		t.Errorf("the report is %q", text)
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
			if err := Run(t.Context(), cfg); err != nil || r.err.String() != "" {
				t.Errorf("%v, %q", err, r.err.String())
			}
		})
	}
}
