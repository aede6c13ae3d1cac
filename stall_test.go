package chorale_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale"
)

// explained returns the report of c's job when it has a text.
func explained(ctx context.Context, c *chorale.Comm, want string) (report string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if report = c.StallReport(); strings.Contains(report, want) {
			return report, nil
		}
	}
	return report, fmt.Errorf("the report is\n%s\nwant %s", report, want)
}

func TestAStallReportNamesTheLineThatWaitsAndTheRankThatDoesNot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, file, line, _ := runtime.Caller(0)
	at := fmt.Sprintf("at %s:%d:", filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), line+12)
	err := chorale.Run(ctx, 3, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 2 {
			report, err := explained(ctx, c, "ranks 0–1 wait in call 0 of communicator 0, \"barrier algorithm=direct\", "+at)
			if err != nil {
				return err
			}
			if want := "rank 2 is the likely cause"; !strings.Contains(report, want) {
				t.Errorf("the report is\n%s\nwant %s", report, want)
			}
		}
		return chorale.Barrier(ctx, c, chorale.WithAlgorithm("direct"))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAStallReportNamesRanksThatWaitForEachOther(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting, done := context.WithCancel(ctx)
	err := chorale.Run(ctx, 3, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 2 {
			defer done()
			_, err := explained(ctx, c, "these ranks wait for each other, and cannot go on unless other goroutines of theirs make calls: rank 0 waits for rank 1")
			return err
		}
		chorale.Recv(waiting, c, make([]int, 1), 1-c.Rank(), 8)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAStallReportOfOneRank(t *testing.T) {
	chorale.Run(t.Context(), 1, func(ctx context.Context, c *chorale.Comm) error {
		if got := c.StallReport(); !strings.HasSuffix(got, "no rank waits for another one") {
			t.Errorf("the report is\n%s", got)
		}
		return nil
	})
	var none *chorale.Comm
	if got := none.StallReport(); got != "" {
		t.Errorf("the report of no communicator is\n%s", got)
	}
}
