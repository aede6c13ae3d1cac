package sched

import "testing"

func TestAnUnknownNameHasTheNearestKnownOne(t *testing.T) {
	known := []string{"linear", "ring", "recursive-doubling", "recursive-halving", "tree"}
	for name, want := range map[string]string{
		"rings": "ring", "Ring": "ring", "rign": "ring", "liner": "linear", "recursive-halfing": "recursive-halving",
		"fugue": "", "": "", "r": "", "recursive": "",
	} {
		if got := (&UnknownError{"algorithm", name, known}).Nearest(); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got, want := (&UnknownError{"algorithm", "tee", known}).Error(), `no algorithm "tee": want tree, or another of linear, ring, recursive-doubling, recursive-halving, tree`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
