package algo_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The costs that the literature gives for any number of ranks. Where there are
// pieces, there are ten.
func TestTheCatalogAgreesWithTheLiterature(t *testing.T) {
	const n, k = 1 << 20, 10
	cost := func(messages, words, combines float64) model.Cost {
		return model.Cost{Startups: messages, Words: words, Combines: combines}
	}
	for _, ranks := range []int{2, 3, 5, 8, 12, 17, 64, 100, 1000} {
		p, lg := float64(ranks), float64(fewest(ranks))
		part := n * (p - 1) / p
		chain, graph := p-2+k, k-1+lg
		for _, test := range []struct {
			c    sched.Collective
			spec string
			want model.Cost
		}{
			{sched.Bcast, "chain,segment=100", cost(chain, chain*n/k, 0)},
			{sched.Bcast, "circulant,blocks=10", cost(graph, graph*n/k, 0)},
			{sched.Reduce, "chain,segment=100", cost(chain, chain*n/k, chain*n/k)},
			{sched.Reduce, "circulant,blocks=10", cost(graph, graph*n/k, graph*n/k)},
			{sched.AllGather, "circulant", cost(lg, part, 0)},
			{sched.ReduceScatter, "circulant", cost(lg, part, part)},
			{sched.AllReduce, "circulant", cost(2*lg, 2*part, part)},
			{sched.AllReduce, "ring", cost(2*(p-1), 2*part, part)},
			{sched.AllReduce, "ring,segment=100", cost(2*k*(p-1), 2*part, part)},
			{sched.AllReduce, "linear", cost(2*(p-1), 2*(p-1)*n, (p-1)*n)},
			{sched.AllReduce, "direct", cost(p-1, (p-1)*n, (p-1)*n)},
			{sched.AllReduce, "hierarchical,group=1", cost(recursiveDoubling(ranks, n))},
			// CLAIM D2
			{sched.Scan, "recursive-doubling", cost(lg, lg*n, lg*n)},
			{sched.Scan, "linear", cost(p-1, (p-1)*n, (p-1)*n)},
			{sched.ExScan, "recursive-doubling", cost(lg, lg*n, (2*(lg-1)-math.Floor(1.5*math.Exp2(lg-1)/p))*n)},
			{sched.ExScan, "linear", cost(p-1, (p-1)*n, (p-2)*n)},
			{sched.Barrier, "linear", cost(2*(p-1), 0, 0)},
			{sched.Barrier, "tree", cost(2*lg, 0, 0)},
			{sched.Barrier, "double-ring", cost(2*(p-1), 0, 0)},
		} {
			got, err := algo.Price(test.c, test.spec, ranks, 0, algo.VariantBytes, n)
			if err != nil {
				t.Fatal(err)
			}
			for _, pair := range [][2]float64{{got.Startups, test.want.Startups}, {got.Words, test.want.Words}, {got.Combines, test.want.Combines}} {
				if math.Abs(pair[0]-pair[1]) > 1e-9*pair[1] {
					t.Errorf("%v %s, p %v: %+v, want %+v", test.c, test.spec, p, got, test.want)
					break
				}
			}
		}
	}
}

// recursiveDoubling is lg p exchanges, and a fold if p is no power of two.
func recursiveDoubling(p int, n float64) (messages, words, combines float64) {
	lg := math.Floor(math.Log2(float64(p)))
	if p&(p-1) == 0 {
		return lg, lg * n, lg * n
	}
	return lg + 2, (lg + 2) * n, (lg + 1) * n
}

// Where no number of pieces is given, the time of a pipeline is as short as it
// gets, if a start-up takes as long as 8K bytes.
func TestTheDefaultNumberOfPiecesIsTheBest(t *testing.T) {
	m := model.Model{Ts: 8192, Tw: 1}
	for _, test := range []struct {
		c     sched.Collective
		name  string
		piece func(bytes, k int) string
	}{
		{sched.Bcast, "chain", inSegments},
		{sched.Bcast, "binary-tree", inSegments},
		{sched.Bcast, "split-binary", inSegments},
		{sched.Bcast, "circulant", inBlocks},
		{sched.Reduce, "chain", inSegments},
		{sched.Reduce, "circulant", inBlocks},
	} {
		for _, p := range []int{5, 16, 100} {
			for _, bytes := range []int{1 << 10, 1 << 16, 1 << 20, 1 << 24} {
				time := func(spec string) float64 {
					cost, err := algo.Price(test.c, spec, p, 0, bytes, float64(bytes))
					if err != nil {
						t.Fatal(err)
					}
					return m.Time(cost)
				}
				chosen := time(test.name)
				for k := 1; k <= 4096 && k <= bytes; k *= 2 {
					if spec := test.name + "," + test.piece(bytes, k); chosen > 1.01*time(spec) {
						t.Errorf("%v of %d bytes on %d ranks: %v, and %s takes %v", test.c, bytes, p, chosen, spec, time(spec))
					}
				}
			}
		}
	}
}

func inSegments(bytes, k int) string { return fmt.Sprintf("segment=%d", (bytes-1)/k+1) }
func inBlocks(_, k int) string       { return fmt.Sprintf("blocks=%d", k) }
