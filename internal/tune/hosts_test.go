package tune

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/model"
)

func TestPairsAreDifferentAndLeaveNoHostOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts, limit := rapid.IntRange(2, 40).Draw(t, "hosts"), rapid.IntRange(0, 100).Draw(t, "limit")
		pairs := Pairs(hosts, limit)
		if want := min(max(limit, (hosts+1)/2), hosts*(hosts-1)/2); len(pairs) != want {
			t.Errorf("%d pairs: want %d", len(pairs), want)
		}
		seen, met := make(map[Pair]bool), make(map[int]bool)
		for _, p := range pairs {
			if p[0] < 0 || p[0] >= p[1] || p[1] >= hosts || seen[p] {
				t.Errorf("%v among %v: want two hosts of %d, once", p, pairs, hosts)
			}
			seen[p], met[p[0]], met[p[1]] = true, true, true
		}
		if len(met) != hosts {
			t.Errorf("%v are of %d hosts: want %d", pairs, len(met), hosts)
		}
	})
}

func TestPairsOfARoundShareNoHost(t *testing.T) {
	for round := range slices.Chunk(Pairs(8, 28), 4) {
		met := make(map[int]bool)
		for _, p := range round {
			met[p[0]], met[p[1]] = true, true
		}
		if len(met) != 8 {
			t.Errorf("the round %v is of %d hosts: want 8", round, len(met))
		}
	}
}

func around(value, by float64) model.Estimate {
	return model.Estimate{Value: value, Low: value / by, High: value * by}
}

func TestWhatAgreesIsAClassTheLargestFirst(t *testing.T) {
	fast, slow := []model.Estimate{around(30, 1), around(300, 1)}, []model.Estimate{around(31, 1), around(3000, 1)}
	for _, c := range []struct {
		what  string
		items [][]model.Estimate
		want  [][]int
	}{
		{"nothing", nil, nil},
		{"one bandwidth of two differs", [][]model.Estimate{fast, slow, slow}, [][]int{{1, 2}, {0}}},
		{"times differ by 9 %", [][]model.Estimate{{around(109, 1)}, {around(100, 1)}}, [][]int{{1, 0}}},
		{"times differ by 12 %", [][]model.Estimate{{around(112, 1)}, {around(100, 1)}}, [][]int{{1}, {0}}},
		{"intervals meet", [][]model.Estimate{{around(150, 1.3)}, {around(100, 1.3)}}, [][]int{{1, 0}}},
		{"a class is as wide as its first allows", [][]model.Estimate{{around(100, 1)}, {around(109, 1)}, {around(118, 1)}}, [][]int{{0, 1}, {2}}},
		{"no time at all", [][]model.Estimate{{{}}, {{}}}, [][]int{{0, 1}}},
	} {
		if got := Classes(c.items); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: the classes are %v: want %v", c.what, got, c.want)
		}
	}
}

func TestThereAreFewClassesHoweverManyDiffer(t *testing.T) {
	var items [][]model.Estimate
	for i := range 100 {
		items = append(items, []model.Estimate{around(math.Pow(1.5, float64(i)), 1)})
	}
	classes := Classes(items)
	all := slices.Sorted(slices.Values(slices.Concat(classes...)))
	if len(classes) > maxUnlike || len(all) != len(items) || len(slices.Compact(all)) != len(items) {
		t.Errorf("%d classes of %d items: want at most %d, of each item once", len(classes), len(all), maxUnlike)
	}
}

func TestHostsWithOtherProcessorsAreUnlike(t *testing.T) {
	host := func(processors int, perByte float64) []model.Estimate {
		return Traits(model.Node{Processors: processors, Copy: model.Line(0, perByte)}, []model.Link{{OneWay: model.Line(1, perByte)}})
	}
	if got := Classes([][]model.Estimate{host(4, 1e-3), host(4, 1.05e-3), host(8, 1e-3), host(4, 2e-3)}); len(got) != 3 || !slices.Equal(got[0], []int{0, 1}) {
		t.Errorf("the classes are %v: want 0 and 1 in one, 2 and 3 alone", got)
	}
}
