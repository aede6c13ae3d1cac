package model_test

import (
	"testing"

	"github.com/chorale-go/chorale/model"
)

func TestTimeChargesEachCountItsRate(t *testing.T) {
	c := model.Cost{Startups: 1, Words: 20, Hops: 300, Combines: 4000}
	for _, test := range []struct {
		m    model.Model
		want float64
	}{
		{model.Model{}, 0},
		{model.Model{Ts: 2}, 2},
		{model.Model{Tw: 2}, 40},
		{model.Model{Th: 2}, 600},
		{model.Model{Top: 2}, 8000},
		{model.Model{Ts: 1, Tw: 1, Th: 1, Top: 1}, 4321},
		{model.Default(), 30},
	} {
		if got := test.m.Time(c); got != test.want {
			t.Errorf("%+v charges %v, want %v", test.m, got, test.want)
		}
	}
}

func TestCostsAddUpAndScale(t *testing.T) {
	c := model.Cost{Startups: 1, Words: 2, Hops: 3, Combines: 4}
	if got, want := c.Plus(c).Plus(c), c.Times(3); got != want {
		t.Errorf("three times %+v is %+v, want %+v", c, got, want)
	}
}
