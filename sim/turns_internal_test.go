package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTurnsAreSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var turns, unused []turn
	for _, n := range []int{0, 1, 100, manyTurns - 1, manyTurns, 3 * manyTurns, manyTurns + 1} {
		for _, indices := range []int32{1, 5, 3000, 1 << 30} {
			for _, messages := range []int32{1, 1000, 1 << 30} {
				turns = turns[:0]
				for range n {
					turns = append(turns, newTurn(rng.Int32N(indices), rng.Int32N(messages)))
				}
				want := slices.Sorted(slices.Values(turns))
				if turns, unused = sortTurns(turns, unused); !slices.Equal(turns, want) {
					t.Fatalf("%d turns with indices below %d, of messages below %d, are not sorted", n, indices, messages)
				}
			}
		}
	}
}
