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

func TestErrorForAnAlgorithmInTheEnvironmentNamesTheVariable(t *testing.T) {
	for env, want := range map[string]string{
		"rnig":                          `CHORALE_ALGORITHM=rnig: no collective has an algorithm "rnig": want ring, or another of chorale list`,
		"fugue":                         `CHORALE_ALGORITHM=fugue: no collective has an algorithm "fugue": see chorale list`,
		"allreduce=rnig":                `CHORALE_ALGORITHM=allreduce=rnig: algo: allreduce: no algorithm "rnig": want ring, or another of linear, tree, `,
		"bcast=rnig":                    `CHORALE_ALGORITHM=bcast=rnig: algo: bcast: no algorithm "rnig": want `,
		"alreduce=ring":                 `CHORALE_ALGORITHM=alreduce=ring: no collective "alreduce": want allreduce, or another of bcast, `,
		"allreduce=ring,broadcast=tree": `CHORALE_ALGORITHM=allreduce=ring,broadcast=tree: no collective "broadcast": want bcast, or another of reduce, `,
		"fugue=ring":                    `CHORALE_ALGORITHM=fugue=ring: no collective "fugue": want bcast, reduce, `,
		"ring,segmnt=8K":                `CHORALE_ALGORITHM=ring,segmnt=8K: algo: allreduce "ring,segmnt=8K": ring has no parameter "segmnt": want segment`,
		"allreduce=mesh.txt":            `CHORALE_ALGORITHM=allreduce=mesh.txt: algo: there is no file mesh.txt`,
		"allreduce=halving-exchange,stages=7;bcast=linear": `CHORALE_ALGORITHM=allreduce=halving-exchange,stages=7: algo: allreduce "halving-exchange,stages=7" on 2 ranks: stages=7: want 0 to 1`,
	} {
		t.Setenv("CHORALE_ALGORITHM", env)
		onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
			v := []int{1}
			err := chorale.AllReduce(ctx, c, v, v, chorale.Sum)
			if !errors.Is(err, chorale.ErrArgument) || !strings.Contains(err.Error(), ": "+want) {
				return fmt.Errorf("%s: got %v, want %s", env, err, want)
			}
			return nil
		})
	}
}

// Rings of most collectives take no segments.
func TestANameAloneStandsForTheCollectivesThatTakeItsParameters(t *testing.T) {
	t.Setenv("CHORALE_ALGORITHM", "ring,segment=8K")
	onRanks(t, 2, func(ctx context.Context, c *chorale.Comm) error {
		var stats chorale.Stats
		v := []int{1}
		if err := chorale.AllReduce(ctx, c, v, v, chorale.Sum, chorale.WithStats(&stats)); err != nil || stats.Algorithm != "ring,segment=8K" {
			return fmt.Errorf("ran %s, %v", stats.Algorithm, err)
		}
		return chorale.AllGather(ctx, c, make([]int, 2), v)
	})
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
