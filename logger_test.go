package chorale_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
)

// A syncBuffer may be written by several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func TestTheLoggerHasTheErrorThatEndsARanksPart(t *testing.T) {
	var out syncBuffer
	chorale.SetLogger(slog.New(slog.NewTextHandler(&out, nil)))
	defer chorale.SetLogger(nil)
	job := func(root func(rank int) int) error {
		return chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.Bcast(ctx, c, []int{1}, root(c.Rank()))
		})
	}
	if err := job(func(int) int { return 0 }); err != nil || out.Len() > 0 {
		t.Errorf("error %v; of calls that succeed the logger has\n%s", err, &out)
	}
	if err := job(func(rank int) int { return 1 - rank }); err == nil { // each waits for the other
		t.Error("roots that differ: want an error")
	}
	text := out.String()
	if !strings.Contains(text, "level=ERROR msg=failed") || !strings.Contains(text, "call=bcast") || strings.Count(text, "\n") > 2 {
		t.Errorf("want the failure of each rank, once, in\n%s", text)
	}
}
