package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestASetOfIDsIsSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ranks := range []int{1, 63, 64, 65, 1000} {
		s := newIDSet(ranks, 0)
		var taken []int32
		for round := range 20 {
			want := make([]int32, 0, ranks)
			for _, rank := range rng.Perm(ranks)[:rng.IntN(ranks+1)/(1+round)] {
				s.add(int32(rank))
				want = append(want, int32(rank))
			}
			slices.Sort(want)
			if taken = s.take(taken); !slices.Equal(taken, want) {
				t.Fatalf("of %d ranks: %v, want %v", ranks, taken, want)
			}
		}
	}
}
