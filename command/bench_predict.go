package command

import (
	"fmt"
	"math"
	"slices"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
)

// predict simulates the rows that were measured, by a profile. Patterns, forms of calls, and
// transports that the profile does not have, are not simulated.
func (m *measurement) predict(p *model.Profile) {
	for i := range m.Rows {
		row := &m.Rows[i]
		if µs, err := simulatedTime(p, *row, m.config.Root); err == nil && µs > 0 {
			ratio := row.Median / µs
			row.Simulated, row.ToSimulated = &µs, &ratio
		}
	}
}

// simulatedTime returns the time of a row's call on the machine of a profile, in µs, in a loop
// of calls as it is measured.
func simulatedTime(p *model.Profile, row bench.Row, root int) (float64, error) {
	cell, err := parseCell(row.Collective)
	switch {
	case err != nil:
		return 0, err
	case cell.Pattern != "" || cell.Form != "":
		return 0, fmt.Errorf("%s is no collective alone", row.Collective)
	}
	return predict.TimeInLoop(p, predict.Call{
		Collective: cell.Collective, Algorithm: row.Algorithm, Ranks: row.Ranks, Bytes: row.Bytes, Transport: row.Transport,
	}, root)
}

// predictionNote says how far the simulation is from what was measured, as the larger of the
// two over the smaller one; "" if nothing was simulated.
func (m *measurement) predictionNote() string {
	var factors []float64
	for _, r := range m.Rows {
		if r.ToSimulated != nil {
			factors = append(factors, max(*r.ToSimulated, 1 / *r.ToSimulated))
		}
	}
	n := len(factors)
	if n == 0 {
		return ""
	}
	slices.Sort(factors)
	return fmt.Sprintf("SIM is the simulation by the machine's profile, and x SIM the median over it. Of %s, half are within a factor of %s, and nine in ten within %s",
		plural(n, "row"), digits(factors[(n-1)/2]), digits(factors[int(math.Ceil(0.9*float64(n)))-1]))
}
