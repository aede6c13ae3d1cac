package clock

import (
	"errors"
	"testing"
)

func TestTheTrueOffsetIsWithinTheBound(t *testing.T) {
	const offset = 1_000_000
	now := int64(0)
	for _, delays := range [][2]int64{{0, 0}, {10, 10}, {1, 99}, {99, 1}, {1, 2}, {0, 1}} {
		o, err := Compare(func() (before, there, after int64, err error) {
			before = now
			now += delays[0]
			there = now + offset
			now += delays[1]
			return before, there, now, nil
		})
		if d := o.Value - offset; err != nil || d > o.Bound || -d > o.Bound || o.Bound > (delays[0]+delays[1]+1)/2 {
			t.Errorf("delays %v: %+v, error %v: want %d within half of the round trip", delays, o, err, offset)
		}
	}
}

func TestTheShortestRoundTripCounts(t *testing.T) {
	trip := int64(1000)
	o, err := Compare(func() (before, there, after int64, err error) {
		trip -= 10
		return 0, 7 + trip/2, trip, nil
	})
	if want := (Offset{At: trip / 2, Value: 7, Bound: trip / 2}); err != nil || o != want {
		t.Errorf("%+v, error %v: want %+v", o, err, want)
	}
	broken := errors.New("broken")
	if _, err := Compare(func() (before, there, after int64, err error) { return 0, 0, 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestClocksDriftBetweenTwoMeasurements(t *testing.T) {
	first, last := Offset{100, 1000, 5}, Offset{200, 1100, 3}
	for at, want := range map[int64]int64{0: 1000, 100: 1000, 150: 1050, 200: 1100, 300: 1100} {
		if o := Between(first, last, at); o.Value != want || o.Bound != 5 {
			t.Errorf("at %d: %+v, want %d and a bound of 5", at, o, want)
		}
	}
	if o := Between(first, first, 150); o.Value != 1000 {
		t.Errorf("measured once: %+v, want 1000", o)
	}
}

func TestTheClockDoesNotGoBackwards(t *testing.T) {
	r := Read()
	if now := Now(); r.Host <= 0 || now < r.Host {
		t.Errorf("%d after %d", now, r.Host)
	}
}
