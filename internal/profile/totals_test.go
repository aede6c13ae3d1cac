package profile

import (
	"testing"
)

// timedCall is a call of two ranks.
func timedCall(sequence uint32, arrival, time float64) TimedCall {
	return TimedCall{"barrier", Sample{Sequence: sequence, Arrival: int64(arrival * 1e9), Time: time, Members: 2}}
}

func TestWaitingIsThePartOfTheTimeBeforeTheLastRankCame(t *testing.T) {
	w := NewWaits()
	w.Add(0, timedCall(0, 10, 4))
	if got := w.Sum(0, "barrier", 4); got != 0 {
		t.Errorf("%v s of waiting before the other rank has told: want 0", got)
	}
	w.Add(1, timedCall(0, 13, 1))
	for rank, want := range []float64{3, 0} {
		if got := w.Sum(rank, "barrier", []float64{8, 2}[rank]); got != want { // the first sum took 4 of the 8
			t.Errorf("rank %d has waited %v s: want %v", rank, got, want)
		}
	}
}

func TestWaitingOnlyGrows(t *testing.T) {
	w, last := NewWaits(), 0.0
	for i := range 20 {
		sequence := uint32(i)
		w.Add(0, timedCall(sequence, 0, 1))
		w.Add(1, timedCall(sequence, float64(i%2), 1)) // now and then the other rank is late
		got := w.Sum(0, "barrier", float64(i+1))
		if got < last || got > float64(i+1) {
			t.Fatalf("%v s of waiting after %v: want more, and no more than the time", got, last)
		}
		last = got
	}
	if last == 0 {
		t.Error("no waiting: want some")
	}
}

func TestCallsThatOtherRanksDoNotTellOfAreDropped(t *testing.T) {
	w := NewWaits()
	for i := range 3 * maxPending {
		w.Add(0, timedCall(uint32(i), 0, 1))
	}
	if len(w.pending) > maxPending || len(w.order) > maxPending {
		t.Errorf("%d calls are kept: want %d at most", len(w.pending), maxPending)
	}
}

func TestTotalsThatAreTooManyAreRefused(t *testing.T) {
	for _, text := range []string{"", "[]", `{"calls":[` + string(make([]byte, 10)) + `]}`} {
		if _, err := DecodeTotals([]byte(text)); err == nil {
			t.Errorf("%q is read: want an error", text)
		}
	}
	many := []byte(`{"calls":[{}`)
	for range MaxCalls {
		many = append(many, `,{}`...)
	}
	if _, err := DecodeTotals(append(many, `]}`...)); err == nil {
		t.Errorf("%d kinds of calls are read: want an error", MaxCalls+1)
	}
}
