package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/launch"
)

func vector(n int) []float64 { return slices.Repeat([]float64{3}, n) }

// A function of ranks is tested with goroutines: they need nothing, and the race detector
// sees them all.
func TestAllRanksGetTheNorm(t *testing.T) {
	for _, ranks := range []int{1, 2, 7} {
		err := chorale.Run(t.Context(), ranks, func(ctx context.Context, c *chorale.Comm) error {
			x, err := norm(ctx, c, vector(10_000))
			if err == nil && x != 300 {
				err = fmt.Errorf("%v: want 300", x)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The same with processes: the test binary is their program, too.
func TestMain(m *testing.M) {
	if env, err := launch.Environment(); err == nil && env.Launched {
		chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
			x, err := norm(ctx, c, vector(10_000))
			fmt.Println(x)
			return err
		})
	}
	os.Exit(m.Run())
}

func TestProcessesGetTheNorm(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, failed bytes.Buffer
	err = launch.Run(t.Context(), launch.Config{Size: 3, Program: program, Stdout: &out, Stderr: &failed})
	if err != nil {
		t.Fatalf("%v\n%s", err, &failed)
	}
	if got := slices.Sorted(strings.Lines(out.String())); !slices.Equal(got, []string{"[0] 300\n", "[1] 300\n", "[2] 300\n"}) {
		t.Errorf("got %q", got)
	}
}

func TestAGroupAnswersConcurrentRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := NewGroup(ctx, 4)
	var requests sync.WaitGroup
	for n := range 50 {
		requests.Go(func() {
			if x, err := g.Norm(vector(n * n)); err != nil || math.Abs(x-3*float64(n)) > 1e-9 {
				t.Errorf("%v, %v: want %v", x, err, 3*n)
			}
		})
	}
	requests.Wait()
	cancel()
	<-g.over
	if _, err := g.Norm(vector(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

func TestARequestThatIsCanceledEndsItsJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Norm(ctx, 4, vector(100)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkRequest is the cost of a request for which there is hardly anything to compute.
func BenchmarkRequest(b *testing.B) {
	v := vector(4)
	b.Run("a job for each", func(b *testing.B) {
		for b.Loop() {
			if _, err := Norm(b.Context(), 4, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("a group that lives on", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		g := NewGroup(ctx, 4)
		for b.Loop() {
			if _, err := g.Norm(v); err != nil {
				b.Fatal(err)
			}
		}
		cancel()
		<-g.over
	})
	b.Run("processes for each", func(b *testing.B) {
		program, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := launch.Run(b.Context(), launch.Config{Size: 4, Program: program}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
