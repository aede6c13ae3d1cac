package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport/inproc"
)

func TestEnvironmentChoosesTheAlgorithmOfCalls(t *testing.T) {
	t.Setenv("CHORALE_ALGORITHM", "allreduce=ring,bcast=linear")
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		var stats chorale.Stats
		v := []int{1}
		if err := chorale.AllReduce(ctx, c, v, v, chorale.Sum, chorale.WithStats(&stats)); err != nil {
			return err
		}
		if stats.Algorithm != "ring" {
			return fmt.Errorf("ran %s", stats.Algorithm)
		}
		// An option of the call overrides the environment.
		if err := chorale.Bcast(ctx, c, v, 0, chorale.WithAlgorithm("binomial"), chorale.WithStats(&stats)); err != nil {
			return err
		}
		if stats.Algorithm != "binomial" {
			return fmt.Errorf("ran %s", stats.Algorithm)
		}
		return nil
	})
}

func TestErrorForAnUnknownAlgorithmInTheEnvironmentListsTheKnownOnes(t *testing.T) {
	for _, env := range []string{"fugue", "allreduce=fugue"} {
		t.Setenv("CHORALE_ALGORITHM", env)
		onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
			v := []int{1}
			err := chorale.AllReduce(ctx, c, v, v, chorale.Sum)
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), "fugue") || !strings.Contains(err.Error(), "recursive-doubling") {
				return fmt.Errorf("got %v", err)
			}
			return nil
		})
	}
}

func TestCommConfigDecidesTheSelection(t *testing.T) {
	for _, test := range []struct {
		config chorale.CommConfig
		want   string
	}{
		{chorale.CommConfig{}, "dissemination"},
		{chorale.CommConfig{Transport: "some other"}, "dissemination"},
		{chorale.CommConfig{Transport: "tcp", Processors: 3}, "dissemination"},
		{chorale.CommConfig{Transport: "tcp", Processors: 2}, "linear"},
		{chorale.CommConfig{Transport: "inproc", Processors: 2}, "direct"},
	} {
		const p = 3
		job := inproc.New(p)
		var ranks sync.WaitGroup
		for rank := range p {
			ranks.Go(func() {
				c := chorale.NewComm(job.Endpoint(rank), test.config)
				defer c.Close()
				var stats chorale.Stats
				if err := chorale.Barrier(t.Context(), c, chorale.WithStats(&stats)); err != nil || stats.Algorithm != test.want {
					t.Errorf("%+v: a barrier of 3 ranks ran %q, %v, want %q", test.config, stats.Algorithm, err, test.want)
				}
			})
		}
		ranks.Wait()
	}
}
