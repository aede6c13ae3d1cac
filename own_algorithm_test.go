package chorale_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// alternating is an all-reduce of two ranks, in which each sends the other its vector.
func alternating() algo.Definition {
	return algo.Definition{
		Algorithm: algo.Algorithm{Collective: sched.AllReduce, Name: "alternating"},
		Build: func(algo.Call) algo.Programs {
			return algo.Programs{Blocks: 1, Program: func(b *sched.Builder, rank int) {
				vector := sched.Range{Lo: 0, Hi: 1}
				b.Copy(sched.In, vector, sched.Out, 0, sched.Replace)
				b.Send(sched.In, vector, 1-rank)
				b.Recv(1-rank, sched.Out, vector, []sched.Combine{sched.Right, sched.Left}[rank])
				b.EndStep()
			}}
		},
	}
}

// allReduceOfTwo returns the algorithm that ran.
func allReduceOfTwo(t *testing.T, options ...chorale.Option) (algorithm string) {
	t.Helper()
	err := chorale.Run(t.Context(), 2, func(ctx context.Context, c *chorale.Comm) error {
		var stats chorale.Stats
		sum := []int{0}
		if err := chorale.AllReduce(ctx, c, sum, []int{1 + c.Rank()}, chorale.Sum, append(options, chorale.WithStats(&stats))...); err != nil {
			return err
		}
		if sum[0] != 3 {
			return fmt.Errorf("the sum is %d", sum[0])
		}
		if c.Rank() == 0 {
			algorithm = stats.Algorithm
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return algorithm
}

func TestACallNamesARegisteredAlgorithmOrAFile(t *testing.T) {
	if err := algo.Register(alternating()); err != nil {
		t.Fatal(err)
	}
	if got := allReduceOfTwo(t, chorale.WithAlgorithm("alternating")); got != "alternating" {
		t.Errorf("%s ran", got)
	}
	s, err := chorale.Schedule("allreduce", "alternating", 2, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Algorithm = "stored"
	file := filepath.Join(t.TempDir(), "stored.txt")
	if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := allReduceOfTwo(t, chorale.WithAlgorithm(file)); got != "stored" {
		t.Errorf("%s ran", got)
	}
	for _, value := range []string{file, "allreduce=" + file, "allreduce=alternating"} {
		t.Setenv("CHORALE_ALGORITHM", value)
		if got := allReduceOfTwo(t); got != "stored" && got != "alternating" || got == "alternating" && value[len(value)-1] != 'g' {
			t.Errorf("%s: %s ran", value, got)
		}
	}
}
