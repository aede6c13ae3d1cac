package chorale_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/model"
)

func init() {
	if os.Getenv("CHORALE_MACHINE") == "" {
		os.Setenv("CHORALE_MACHINE", "off") // whatever this machine's profile says
	}
}

// writeMachine writes a profile by whose rules an allreduce of 1000 bytes or less on 3 ranks
// takes an algorithm, and makes it that of jobs.
func writeMachine(t *testing.T, algorithm string) (file string) {
	t.Helper()
	p := model.Profile{Version: model.ProfileVersion, Node: model.Node{Processors: 1, Copy: model.Line(0, 1)}}
	p.SetSelection(model.Selection{
		Version: model.SelectionVersion, Transport: "inproc", Processors: processors.Parallel(),
		Rules: []model.Rule{{Collective: "allreduce", Ranks: 3, To: 1000, Algorithm: algorithm, Time: 1, BuiltIn: "linear", BuiltInTime: 2}},
	})
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "machine.json")
	if err := os.WriteFile(file, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CHORALE_MACHINE", file)
	return file
}

// ranAlgorithm returns what an allreduce of some float64 runs.
func ranAlgorithm(ctx context.Context, c *chorale.Comm, count int, options ...chorale.Option) (string, error) {
	var stats chorale.Stats
	v := make([]float64, count)
	err := chorale.AllReduce(ctx, c, v, v, chorale.Sum, append(options, chorale.WithStats(&stats))...)
	return stats.Algorithm, err
}

func TestCallsTakeTheAlgorithmsOfTheMachinesProfile(t *testing.T) {
	writeMachine(t, "ring")
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		got, err := ranAlgorithm(ctx, c, 8)
		if err == nil && got != "ring" {
			err = fmt.Errorf("64 bytes by %s: want ring", got)
		}
		return err
	})
}

func TestCallsThatTheProfileHasNoRuleForTakeTheBuiltInChoice(t *testing.T) {
	builtIn := func(ranks, count int) (algorithm string) {
		t.Setenv("CHORALE_MACHINE", "off")
		onRanks(t, ranks, func(ctx context.Context, c *chorale.Comm) error {
			got, err := ranAlgorithm(ctx, c, count)
			if c.Rank() == 0 {
				algorithm = got
			}
			return err
		})
		return algorithm
	}
	for _, call := range []struct{ ranks, count int }{{3, 1000}, {4, 8}} {
		want := builtIn(call.ranks, call.count)
		writeMachine(t, "ring")
		onRanks(t, call.ranks, func(ctx context.Context, c *chorale.Comm) error {
			got, err := ranAlgorithm(ctx, c, call.count)
			if err == nil && got != want {
				err = fmt.Errorf("%d float64 on %d ranks by %s: want %s", call.count, call.ranks, got, want)
			}
			return err
		})
	}
}

// The rules of a world of 3 ranks are those of a part of 3 ranks, too.
func TestAPartOfTheRanksTakesTheRulesForItsSize(t *testing.T) {
	writeMachine(t, "ring")
	onRanks(t, 4, func(ctx context.Context, c *chorale.Comm) error {
		part, err := c.Split(ctx, min(c.Rank(), 1), 0)
		if err != nil || part.Size() == 1 {
			return err
		}
		got, err := ranAlgorithm(ctx, part, 8)
		if err == nil && got != "ring" {
			err = fmt.Errorf("64 bytes on 3 of 4 ranks by %s: want ring", got)
		}
		return err
	})
}

func TestACallAndTheEnvironmentOverrideTheProfile(t *testing.T) {
	writeMachine(t, "ring")
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		got, err := ranAlgorithm(ctx, c, 8, chorale.WithAlgorithm("tree"))
		if err == nil && got != "tree" {
			err = fmt.Errorf("WithAlgorithm tree: ran %s", got)
		}
		return err
	})
	t.Setenv("CHORALE_ALGORITHM", "allreduce=butterfly")
	onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
		got, err := ranAlgorithm(ctx, c, 8)
		if err == nil && got != "butterfly" {
			err = fmt.Errorf("CHORALE_ALGORITHM=allreduce=butterfly: ran %s", got)
		}
		return err
	})
}

// Jobs keep compiled programs for later ones. Those of another profile are not among them.
func TestAJobTakesNoProgramsThatOneWithAnotherProfileHasKept(t *testing.T) {
	for _, algorithm := range []string{"ring", "tree", "ring"} {
		writeMachine(t, algorithm)
		for range 2 {
			onRanks(t, 3, func(ctx context.Context, c *chorale.Comm) error {
				got, err := ranAlgorithm(ctx, c, 8)
				if err == nil && got != algorithm {
					err = fmt.Errorf("ran %s: want %s", got, algorithm)
				}
				return err
			})
		}
	}
}

func TestRunFailsIfTheProfileThatIsNamedCannotBeRead(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.json")
	if err := os.WriteFile(wrong, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/absent.json": "chorale: run: CHORALE_MACHINE=/absent.json: there is no profile /absent.json: chorale tune makes one",
		wrong:          "chorale: run: CHORALE_MACHINE=" + wrong + ": " + wrong + ": not a profile: it has no version",
	} {
		t.Setenv("CHORALE_MACHINE", file)
		err := chorale.Run(t.Context(), 2, func(context.Context, *chorale.Comm) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
