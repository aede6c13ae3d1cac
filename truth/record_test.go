package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/model"
)

func TestTheCellsOfARecordAreSimulatedAgainByItsProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cells.json")
	r := &report{Date: "1 May 2026", Command: "go run ./truth", Rounds: 2, profile: &model.Profile{
		Version: model.ProfileVersion, Node: model.Node{Processors: 2},
		Links: []model.Link{{Transport: "shm", OneWay: model.Line(10, 0), Exchange: model.Line(10, 0)}},
	}, cells: []cell{at("binomial", 99, 20, 5)}}
	if err := r.keep(file); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.Date != r.Date || got.Command != r.Command || got.Rounds != 2 || len(got.cells) != 1 {
		t.Fatalf("read %+v: want %+v", got, r)
	}
	c := got.cells[0]
	if !near1(c.Median, 10) || !near1(c.rounds[1], 5) || c.vector != 64 || !near1(*c.Simulated, 10) {
		t.Errorf("read a cell of %v µs in rounds of %v, simulated %v: want 10, 20 and 5, and 10", c.Median, c.rounds, *c.Simulated)
	}
}

func TestAFileThatIsNoRecordIsRefused(t *testing.T) {
	for text, want := range map[string]string{"{": "want a file of --keep", "{}": "no profile", `{"profile":{},"cells":[{"collective":"sing"}]}`: "sing"} {
		file := filepath.Join(t.TempDir(), "cells.json")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readReport(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v: want an error with the file and %q", text, err, want)
		}
	}
}
