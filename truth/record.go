package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A record is a report as a file: whoever changes the simulation sees by it what that does to
// the cells, without measuring them again.
type record struct {
	Date    string         `json:"date"`
	Command string         `json:"command"`
	Rounds  int            `json:"rounds"`
	Profile *model.Profile `json:"profile"`
	Cells   []recordedCell `json:"cells"`
}

type recordedCell struct {
	bench.Row
	Vector int       `json:"vector"`
	Rounds []float64 `json:"rounds"`
}

// keep writes the report's record.
func (r *report) keep(file string) error {
	k := record{Date: r.Date, Command: r.Command, Rounds: r.Rounds, Profile: r.profile, Cells: make([]recordedCell, len(r.cells))}
	for i, c := range r.cells {
		k.Cells[i] = recordedCell{c.Row, c.vector, c.rounds}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o666)
}

// readReport returns the report of a record, with all cells simulated anew.
func readReport(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var k record
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w: want a file of --keep", file, err)
	}
	if k.Profile == nil {
		return nil, fmt.Errorf("%s: no profile: want a file of --keep", file)
	}
	r := &report{Date: k.Date, Command: k.Command, Rounds: k.Rounds, profile: k.Profile}
	for _, c := range k.Cells {
		op, err := sched.ParseCollective(c.Collective)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		µs, err := predict.TimeInLoop(k.Profile, predict.Call{Collective: op, Algorithm: c.Algorithm, Ranks: c.Ranks, Bytes: c.Bytes, Transport: c.Transport}, bench.RotatingRoot)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		c.Simulated = &µs
		r.cells = append(r.cells, cell{Row: c.Row, vector: c.Vector, rounds: c.Rounds})
	}
	return r, nil
}
