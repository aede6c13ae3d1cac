package algo_test

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// placements are the hosts of ranks, in the order of the ranks, and how the parameter
// hosts says so.
var placements = []struct {
	hosts []int
	text  string
}{
	{[]int{0}, "1"},
	{[]int{7, 7, 7}, "1"},
	{[]int{0, 1, 2}, "3"},
	{[]int{0, 0, 1, 1}, "2"},
	{[]int{5, 5, 2, 2}, "2"},
	{[]int{0, 0, 0, 1, 1}, "2"},
	{[]int{0, 0, 1, 1, 1}, "2+3"},
	{[]int{0, 0, 1, 1, 2, 2, 3}, "4"},
	{[]int{0, 1, 1, 2, 2, 3, 3}, "1+3x2"},
	{[]int{0, 1, 0, 1}, "cyclic:2"},
	{[]int{0, 1, 2, 0, 1, 2, 0}, "cyclic:3"},
	{[]int{0, 1, 0, 0}, "cyclic:3+1"},
	{[]int{0, 1, 2, 0, 2, 2}, "cyclic:2+1+3"},
	{[]int{0, 1, 1, 0}, "map:0.2x1.0"},
	{[]int{0, 0, 1, 1, 0, 0, 1, 1}, "map:2x0.2x1.2x0.2x1"},
	{[]int{9, 4, 9, 9, 4, 4, 1}, "map:0.1.2x0.2x1.2"},
	{slices.Repeat([]int{0, 1, 2, 3, 4}, 6), "cyclic:5"},
	{slices.Sorted(slices.Values(slices.Repeat([]int{0, 1, 2, 3, 4, 5, 6}, 4))), "7"},
}

// hierarchical returns the collectives that have a hierarchical algorithm.
func hierarchical() (all []sched.Collective) {
	for _, c := range sched.Collectives() {
		if _, err := algo.Lookup(c, "hierarchical"); err == nil {
			all = append(all, c)
		}
	}
	return all
}

func TestHostsAreWrittenShortAndReadAgain(t *testing.T) {
	for _, test := range placements {
		text := algo.FormatHosts(test.hosts)
		if text != test.text {
			t.Errorf("%v: got %q, want %q", test.hosts, text, test.text)
		}
		for _, c := range hierarchical() {
			if _, err := algo.New(c, "hierarchical,hosts="+text, len(test.hosts), 0, 0); err != nil {
				t.Error(err)
			}
		}
	}
}

// Each host is reached by one message from another, or reaches another by one; leaders
// exchange as the algorithm between them does. Wherever the ranks are placed, no more
// messages go between hosts.
func TestFewMessagesGoBetweenHosts(t *testing.T) {
	for _, test := range placements {
		p, h := len(test.hosts), len(slices.Compact(slices.Sorted(slices.Values(test.hosts))))
		lg := bits.Len(uint(h)) - 1
		pairs := h - 1<<lg
		exchange := 1<<lg*lg + 2*pairs
		k := leastOnHost(test.hosts)
		for _, want := range []struct {
			c       sched.Collective
			between string
			count   int
		}{
			{sched.Bcast, "binomial", h - 1},
			{sched.Bcast, "scatter-allgather", h - 1 + exchange},
			{sched.Reduce, "binomial", h - 1},
			{sched.Reduce, "reduce-scatter-gather", 1<<lg*lg + pairs + 1<<lg - 1},
			{sched.Scatter, "", h - 1},
			{sched.Gather, "", h - 1},
			{sched.AllGather, "recursive-doubling", exchange},
			{sched.AllGather, "ring", min(h-1, 1) * h * (p - 1)},
			{sched.ReduceScatter, "recursive-doubling", exchange},
			{sched.ReduceScatter, "pairwise", h * (h - 1)},
			{sched.AllReduce, "recursive-doubling", exchange},
			{sched.AllReduce, "recursive-halving", k * (2*1<<lg*lg + 2*pairs)},
			{sched.Barrier, "", h * bits.Len(uint(h-1))},
		} {
			spec := "hierarchical,hosts=" + test.text
			if want.between != "" {
				spec += ",between=" + want.between
			}
			for _, root := range roots(want.c, p) {
				s := newSchedule(t, want.c, spec, p, root)
				if got := crossings(t, s, test.hosts); got != want.count {
					t.Errorf("%s: %d messages between hosts, want %d", describe(s), got, want.count)
				}
				if err := s.Check(); err != nil {
					t.Errorf("%s: %v", describe(s), err)
				}
			}
		}
	}
}

// betweens returns the algorithm with each value of the parameter between, and with some
// numbers of leaders up to most, if it has these parameters.
func betweens(c sched.Collective, spec string, most int) []string {
	a, err := algo.Lookup(c, "hierarchical")
	if err != nil {
		return nil
	}
	specs := []string{spec}
	with := func(key string, values []string) {
		if !slices.ContainsFunc(a.Params, func(p algo.Param) bool { return p.Key == key }) {
			return
		}
		var all []string
		for _, spec := range specs {
			for _, value := range values {
				all = append(all, spec+","+key+"="+value)
			}
		}
		specs = all
	}
	for _, p := range a.Params {
		if p.Key == "between" {
			with(p.Key, strings.Split(p.Values, "|"))
		}
	}
	leaders := []string{"1", strconv.Itoa(min(2, most)), strconv.Itoa((most + 1) / 2), strconv.Itoa(most)}
	slices.Sort(leaders)
	with("leaders", slices.Compact(leaders))
	return specs
}

// leastOnHost returns the fewest ranks on a host.
func leastOnHost(hosts []int) int {
	counts := make(map[int]int)
	for _, host := range hosts {
		counts[host]++
	}
	return slices.Min(slices.Collect(maps.Values(counts)))
}

// drawHosts draws the hosts of some ranks: in any order, or by block, and half of the time
// one host has many more than the others.
func drawHosts(t *rapid.T) []int {
	hosts := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 24).Draw(t, "hosts")
	if rapid.Bool().Draw(t, "one is large") {
		for i := range hosts {
			hosts[i] = max(0, hosts[i]-8)
		}
	}
	if rapid.Bool().Draw(t, "by block") {
		slices.Sort(hosts)
		if rapid.Bool().Draw(t, "downward") {
			slices.Reverse(hosts)
		}
	}
	return hosts
}

// Wherever the ranks are placed, the schedule is right, and takes as long as the catalog
// says or less.
func TestEveryPlacementIsRightAndTakesNoLongerThanTheCatalogSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hosts := drawHosts(rt)
		p := len(hosts)
		for _, c := range hierarchical() {
			root := 0
			if c.Rooted() {
				root = rapid.IntRange(0, p-1).Draw(rt, "root")
			}
			for _, spec := range betweens(c, "hierarchical,hosts="+algo.FormatHosts(hosts), leastOnHost(hosts)) {
				s := newSchedule(t, c, spec, p, root)
				if err := s.Check(); err != nil {
					rt.Errorf("%s: %v", describe(s), err)
				}
				cost, err := algo.Price(c, spec, p, root, algo.VariantBytes, float64(s.Blocks))
				if err != nil {
					rt.Fatal(err)
				}
				steps := moments(t, s)
				for _, m := range models {
					if got, want := timeOf(s, steps, m, false), m.Time(cost); got > want*(1+1e-9) {
						rt.Errorf("%s takes %v under %+v, and the catalog says %v", describe(s), got, m, want)
					}
				}
			}
		}
	})
}

// crossings counts the messages between ranks of different hosts.
func crossings(t *testing.T, s *sched.Schedule, hosts []int) (n int) {
	for _, step := range moments(t, s) {
		for _, m := range step.messages {
			if hosts[m.From] != hosts[m.To] {
				n++
			}
		}
	}
	return n
}

// Each leader exchanges a piece of the vector between hosts: there are as many messages for
// each as for one, and as many words in all.
func TestLeadersShareWhatGoesBetweenHosts(t *testing.T) {
	hosts := slices.Repeat([]int{0, 1, 2, 3}, 6)
	slices.Sort(hosts)
	for _, test := range []struct {
		c       sched.Collective
		between string
	}{
		{sched.Bcast, "binomial"}, {sched.Bcast, "scatter-allgather"},
		{sched.Reduce, "binomial"}, {sched.Reduce, "reduce-scatter-gather"},
		{sched.AllReduce, "recursive-doubling"}, {sched.AllReduce, "recursive-halving"},
	} {
		spec := "hierarchical,hosts=4,between=" + test.between + ",leaders="
		one := newSchedule(t, test.c, spec+"1", len(hosts), 7%len(hosts)*rooted(test.c))
		for _, k := range []int{2, 3, 6} {
			s := newSchedule(t, test.c, spec+strconv.Itoa(k), len(hosts), one.Root)
			if got, want := crossings(t, s, hosts), k*crossings(t, one, hosts); got != want {
				t.Errorf("%s: %d messages between hosts, want %d", describe(s), got, want)
			}
			if got, want := crossingWords(t, s, hosts), crossingWords(t, one, hosts); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %v vectors go between hosts, want %v", describe(s), got, want)
			}
		}
	}
}

func rooted(c sched.Collective) int {
	if c.Rooted() {
		return 1
	}
	return 0
}

// crossingWords returns how much goes between ranks of different hosts, in vectors.
func crossingWords(t *testing.T, s *sched.Schedule, hosts []int) (vectors float64) {
	for _, step := range moments(t, s) {
		for _, m := range step.messages {
			if hosts[m.From] != hosts[m.To] {
				vectors += float64(m.Blocks.Len()) / float64(s.Blocks)
			}
		}
	}
	return vectors
}

func TestLeadersAreAsManyAsTheSmallestHostHasRanks(t *testing.T) {
	for spec, want := range map[string]string{
		"hierarchical,hosts=3+5,leaders=4": "want 1 to 3, as many as the smallest host has ranks",
		"hierarchical,hosts=2,leaders=0":   "want 1 to 4, as many as the smallest host has ranks",
		"hierarchical,hosts=2,leaders=x":   "want a number, 0 or more",
	} {
		_, err := algo.New(sched.Bcast, spec, 8, 0, 0)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
	}
}

// Long vectors go between hosts in pieces, without being asked for.
func TestLongVectorsAreSentInPiecesBetweenHosts(t *testing.T) {
	for c, between := range map[sched.Collective][2]string{
		sched.Bcast:         {"binomial", "scatter-allgather"},
		sched.Reduce:        {"binomial", "reduce-scatter-gather"},
		sched.AllReduce:     {"recursive-doubling", "recursive-halving"},
		sched.ReduceScatter: {"recursive-doubling", "pairwise"},
		sched.AllGather:     {"recursive-doubling", "ring"},
	} {
		for i, bytes := range []int{8, 64 << 20} {
			s, err := algo.New(c, "hierarchical,hosts=4", 16, 0, bytes)
			if err != nil {
				t.Fatal(err)
			}
			named, err := algo.New(c, "hierarchical,hosts=4,between="+between[i], 16, 0, bytes)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Equal(named) {
				t.Errorf("%v of %d bytes: not by %s", c, bytes, between[i])
			}
		}
	}
}

func TestHostsOutOfOrderRestrictWhatNeedsTheOrder(t *testing.T) {
	for _, c := range hierarchical() {
		parted := (&sched.Schedule{Collective: c}).Partitioned()
		for text, ordered := range map[string]bool{
			"2": true, "8": true, "1": true, "3+5": true, "map:3x1.5x0": true, "cyclic:8": true, "cyclic:7x1+1": true, "cyclic:1": true,
			"cyclic:2": false, "cyclic:2+6": false, "map:4x0.3x1.0": false,
		} {
			r, err := algo.Restricted(c, "hierarchical,hosts="+text, 8)
			if err != nil {
				t.Fatal(err)
			}
			want := algo.Restrictions{Commutative: !ordered && c.Combines(), EqualParts: !ordered && parted}
			if r != want {
				t.Errorf("%v, hosts=%s: %v, want %v", c, text, r, want)
			}
			s := newSchedule(t, c, "hierarchical,hosts="+text, 8, 0)
			if s.Commutative != want.Commutative || s.Uneven != (parted && !want.EqualParts) {
				t.Errorf("%v: commutative %v, uneven %v, want %v", describe(s), s.Commutative, s.Uneven, want)
			}
		}
	}
	if _, err := algo.Restricted(sched.Bcast, "choir", 8); err == nil {
		t.Error("an algorithm that does not exist has restrictions")
	}
}

func TestErrorsOfHostsSayWhatWouldBeRight(t *testing.T) {
	const forms = "want hosts, as in 4, 3+3+2, cyclic:4 or map:0.1.1.0"
	for text, want := range map[string]string{
		"":                      forms,
		"x":                     forms,
		"0x3+5":                 forms,
		"3+":                    forms,
		"-1":                    "want 1 to 8 hosts",
		"9":                     "want 1 to 8 hosts",
		"cyclic:":               forms,
		"cyclic:0":              "want 1 to 8 hosts",
		"map:":                  forms,
		"map:0+1":               forms,
		"4+5":                   "want as many ranks in all as there are, 8",
		"3+3":                   "want as many ranks in all as there are, 8",
		"8+0":                   "a host without ranks: want 1 or more on each",
		"2147483647x2147483647": "want as many ranks in all as there are, 8",
		"map:7x0":               "want as many ranks in all as there are, 8",
		"map:7x0.8":             "host 8: want 0 to 7",
		"map:9999999999x0":      forms,
	} {
		_, err := algo.New(sched.Bcast, "hierarchical,hosts="+text, 8, 0, 0)
		full := fmt.Sprintf("algo: bcast %q on 8 ranks: hosts=%s: %s", "hierarchical,hosts="+text, text, want)
		if err == nil || err.Error() != full {
			t.Errorf("got  %v\nwant %s", err, full)
		}
	}
	_, err := algo.New(sched.AllReduce, "hierarchical,group=2,hosts=4", 8, 0, 0)
	if err == nil || !strings.HasSuffix(err.Error(), "hosts=4: group=2 is given too: want one of them") {
		t.Errorf("got %v", err)
	}
}

// The ranks of a million that make their programs compute the hosts once.
func TestProgramsOfManyHostsAreShort(t *testing.T) {
	for _, c := range hierarchical() {
		for _, text := range []string{"1024", "cyclic:1024", "1000x1000+48576"} {
			s := newSchedule(t, c, "hierarchical,hosts="+text, million, 0)
			for _, rank := range []int{1, million/3 + 1, million - 1} {
				if c == sched.AllGather && strings.HasPrefix(text, "cyclic") {
					continue // copies a million blocks
				}
				if n := len(s.Program(rank)); n > 64 {
					t.Errorf("%s: rank %d has %d steps, want 64 at most", describe(s), rank, n)
				}
			}
		}
	}
}
