package algo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// turns is a gather in which the root receives from every rank, by turns of every so many.
func turns() Definition {
	return Definition{
		Algorithm: Algorithm{
			Collective: sched.Gather, Name: "turns",
			Params: []Param{{Key: "by", Default: "1", Values: "a number", Doc: "the distance of ranks that send one after another"}},
		},
		Build: func(c Call) Programs {
			return Programs{Blocks: c.Ranks(), Program: func(b *sched.Builder, rank int) {
				if rank != c.Root() {
					b.Send(sched.In, one(rank), c.Root())
					b.EndStep()
					return
				}
				b.Copy(sched.In, one(rank), sched.Out, rank, sched.Replace)
				for first := range c.Number("by") {
					for from := first; from < c.Ranks(); from += c.Number("by") {
						if from != rank {
							b.Recv(from, sched.Out, one(from), sched.Replace)
							b.EndStep()
						}
					}
				}
			}}
		},
	}
}

func forget(t *testing.T) { t.Cleanup(func() { registered.Store(nil) }) }

func TestARegisteredAlgorithmIsAsGoodAsOneOfTheCatalog(t *testing.T) {
	forget(t)
	if err := Register(turns()); err != nil {
		t.Fatal(err)
	}
	a, err := Lookup(sched.Gather, "turns")
	if err != nil {
		t.Fatal(err)
	}
	for p := 1; p < 9; p++ {
		for _, spec := range append(Variants(a, p), "turns,by=3") {
			s, err := New(sched.Gather, spec, p, p/2, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil || s.Algorithm != spec {
				t.Errorf("%s is %s: %v", spec, s.Algorithm, err)
			}
		}
	}
	if _, err := New(sched.Gather, "turns,by=x", 4, 0, 0); err == nil || !strings.Contains(err.Error(), "by=x: want a number") {
		t.Errorf("a wrong value: got %v", err)
	}
	if _, err := Price(sched.Gather, "turns", 4, 0, 0, 1); !errors.Is(err, ErrNoFormula) {
		t.Errorf("without a cost: got %v", err)
	}
	if _, err := Cheapest(sched.Gather, 4, 0, 1, 8, model.Default(), Constraints{}); err != nil {
		t.Errorf("the cheapest of the others: got %v", err)
	}
	if n := len(For(sched.Gather)); For(sched.Gather)[n-1].Name != "turns" {
		t.Error("it is not the last of its collective")
	}
}

func TestADefinitionThatLacksSomethingIsRefused(t *testing.T) {
	forget(t)
	for want, change := range map[string]func(*Definition){
		"the catalog has one of this name": func(d *Definition) { d.Name = "binomial" },
		"want a name of lower-case":        func(d *Definition) { d.Name = "my.own" },
		"no Build":                         func(d *Definition) { d.Build = nil },
		"no such collective":               func(d *Definition) { d.Collective = 99 },
		`by with default "x"`:              func(d *Definition) { d.Params[0].Default = "x" },
		`parameter "By"`:                   func(d *Definition) { d.Params[0].Key = "By" },
	} {
		d := turns()
		change(&d)
		if err := Register(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if registered.Load() != nil {
		t.Error("something was registered")
	}
}

func TestAFileServesWhereANameDoes(t *testing.T) {
	mine, err := New(sched.Bcast, "chain", 4, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine.Algorithm = ""
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(file, []byte(mine.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(sched.Bcast, file, 4, 1, 1000)
	if err != nil || s.Algorithm != "mine.txt" || s.Program(1) == nil {
		t.Fatalf("got %v, %v", s, err)
	}
	wrong := filepath.Join(dir, "wrong.txt")
	if err := os.WriteFile(wrong, []byte("schedule bcast x\nranks 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		c       sched.Collective
		file    string
		p, root int
		want    string
	}{
		{sched.Bcast, file, 5, 1, "mine.txt is for bcast on 4 ranks with root 1: want a file for bcast on 5 ranks with root 1"},
		{sched.Bcast, file, 4, 0, "with root 0"},
		{sched.Barrier, file, 4, 0, "want a file for barrier on 4 ranks"},
		{sched.Bcast, wrong, 2, 0, "wrong.txt: ranks 0–1 at the end"},
		{sched.Bcast, filepath.Join(dir, "none.txt"), 2, 0, "none.txt"},
	} {
		if _, err := New(test.c, test.file, test.p, test.root, 0); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	if r, err := Restricted(sched.Bcast, file, 4); err != nil || r != (Restrictions{}) {
		t.Errorf("restrictions %v, %v", r, err)
	}
	for _, a := range Catalog() {
		if IsFile(a.Name) {
			t.Errorf("%s counts as a file", a.Name)
		}
	}
}
