package algo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/model"
)

// hostsParam says which ranks share a host. In all forms, NxV stands for N times
// V.
//
//	4                4 hosts, by block: rank 0 and those that follow share the first
//	3+3+2, 2x3+2     by block, so many ranks on each host
//	cyclic:4         ranks go round 4 hosts
//	cyclic:2x3+2     ranks go round the hosts that have room for more
//	map:0.1.1.2.0    the number of each rank's host
var hostsParam = Param{
	Key: "hosts", Values: hostForms,
	Doc: "which ranks share a host: a number of hosts, or the ranks of each, by block or cyclic; or the host of each rank; " +
		"if not given, about √p by block; other than by block, operators must commute and parts be equally long",
	parse:    parseHosts,
	choose:   func(c call) value { return numberOf(max(1, int(math.Round(math.Sqrt(float64(c.p)))))) },
	check:    func(c call, v value) error { return v.place(c.p) },
	variants: hostVariants,
	candidates: func(c call) (all []value) { // powers of two of hosts, or of ranks on a host, or about so
		for n := 1; n <= c.p; n *= 2 {
			all = append(all, numberOf(n), numberOf((c.p-1)/n+1))
		}
		return all
	},
}

const hostForms = "hosts, as in 4, 3+3+2, cyclic:4 or map:0.1.1.0"

// The prefixes of forms that are not by block.
const (
	cyclicHosts = "cyclic:"
	mappedHosts = "map:"
)

// parseHosts reads which ranks share a host. The sizes of the value are pairs: how
// often a number stands there, and the number. A form that gives the number of hosts
// alone has no sizes.
func parseHosts(text string) (value, error) {
	want := fmt.Errorf("want %s", hostForms)
	prefix, separator := "", "+"
	switch {
	case strings.HasPrefix(text, cyclicHosts):
		prefix = cyclicHosts
	case strings.HasPrefix(text, mappedHosts):
		prefix, separator = mappedHosts, "."
	}
	rest := text[len(prefix):]
	if n, err := strconv.Atoi(rest); err == nil && prefix != mappedHosts {
		return value{text: prefix + strconv.Itoa(n), number: n}, nil
	}
	var pairs []int
	for word := range strings.SplitSeq(rest, separator) {
		times, number, repeated := strings.Cut(word, "x")
		if !repeated {
			times, number = "1", word
		}
		n, err := strconv.ParseUint(times, 10, 31)
		v, err2 := strconv.ParseUint(number, 10, 31)
		if err != nil || err2 != nil || n == 0 {
			return value{}, want
		}
		pairs = appendPair(pairs, int(n), int(v))
	}
	return value{text: prefix + formatPairs(pairs, separator), sizes: pairs}, nil
}

// appendPair appends n times v.
func appendPair(pairs []int, n, v int) []int {
	if last := len(pairs) - 1; last > 0 && pairs[last] == v {
		pairs[last-1] += n
		return pairs
	}
	return append(pairs, n, v)
}

// formatPairs writes pairs as in 2x3+2. A single number of ranks would be taken for
// a number of hosts: it is written as in 1x8.
func formatPairs(pairs []int, separator string) string {
	var words []string
	for i := 0; i < len(pairs); i += 2 {
		word := strconv.Itoa(pairs[i+1])
		if pairs[i] > 1 || len(pairs) == 2 && separator == "+" {
			word = strconv.Itoa(pairs[i]) + "x" + word
		}
		words = append(words, word)
	}
	return strings.Join(words, separator)
}

// place returns an error unless the value places p ranks.
func (v value) place(p int) error {
	mapped := strings.HasPrefix(v.text, mappedHosts)
	if v.sizes == nil {
		if v.number < 1 || v.number > p {
			return fmt.Errorf("want 1 to %d hosts", p)
		}
		return nil
	}
	rest := p // ranks without a host
	for i := 0; i < len(v.sizes); i += 2 {
		n, number := v.sizes[i], v.sizes[i+1]
		switch {
		case mapped && number >= p:
			return fmt.Errorf("host %d: want 0 to %d", number, p-1)
		case mapped:
			number = 1
		case number < 1:
			return fmt.Errorf("a host without ranks: want 1 or more on each")
		}
		if n > rest/number {
			rest = -1
			break
		}
		rest -= n * number
	}
	if rest != 0 {
		return fmt.Errorf("want as many ranks in all as there are, %d", p)
	}
	return nil
}

// hostSizes are the numbers that the cost of an algorithm depends on.
type hostSizes struct {
	hosts             int
	largest, smallest int // the most ranks on a host, and the fewest
}

// hostSizes returns the sizes of the call's hosts.
func (c call) hostSizes() hostSizes {
	v := c.values["hosts"]
	switch {
	case v.sizes == nil:
		return hostSizes{v.number, (c.p-1)/v.number + 1, c.p / v.number}
	case strings.HasPrefix(v.text, mappedHosts):
		counts := make(map[int]int)
		for i := 0; i < len(v.sizes); i += 2 {
			counts[v.sizes[i+1]] += v.sizes[i]
		}
		s := hostSizes{hosts: len(counts), smallest: c.p}
		for _, n := range counts {
			s.largest, s.smallest = max(s.largest, n), min(s.smallest, n)
		}
		return s
	}
	s := hostSizes{smallest: c.p}
	for i := 0; i < len(v.sizes); i += 2 {
		n := v.sizes[i+1]
		s.hosts += v.sizes[i]
		s.largest, s.smallest = max(s.largest, n), min(s.smallest, n)
	}
	return s
}

// byBlock reports whether the ranks of each host follow each other.
func (c call) byBlock() bool {
	v := c.values["hosts"]
	switch {
	case strings.HasPrefix(v.text, mappedHosts):
		return newHosts(expand(v.sizes)).order == nil
	case strings.HasPrefix(v.text, cyclicHosts):
		for i := 0; i < len(v.sizes); i += 2 { // only the last host may have more than one
			if last := i+2 == len(v.sizes); v.sizes[i+1] > 1 && !(last && v.sizes[i] == 1) {
				return false
			}
		}
		return v.sizes != nil || v.number == 1 || v.number == c.p
	}
	return true
}

// expand returns the numbers that pairs stand for.
func expand(pairs []int) (all []int) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, slices.Repeat(pairs[i+1:i+2], pairs[i])...)
	}
	return all
}

// PlaceHosts returns what a text, as for the parameter hosts, says of p ranks: how many are on
// each host, and the place of each rank where those of one host follow those of the one before.
// It returns an error if the text does not place p ranks.
func PlaceHosts(text string, p int) (sizes, places []int, err error) {
	v, err := parseHosts(text)
	if err == nil {
		err = v.place(p)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", text, err)
	}
	h := call{p: p, values: map[string]value{"hosts": v}}.layout()()
	for host := range h.count() {
		sizes = append(sizes, h.size(host))
	}
	places = make([]int, p)
	for rank := range places {
		places[rank] = h.at(rank)
	}
	return sizes, places, nil
}

// FormatHosts returns the parameter hosts of the algorithms named hierarchical, for
// ranks on hosts as given: element r is any number that stands for the host of rank
// r.
func FormatHosts(hosts []int) string {
	h := newHosts(hosts)
	var sizes, pairs []int
	for i := range h.count() {
		sizes = append(sizes, h.size(i))
		pairs = appendPair(pairs, 1, h.size(i))
	}
	numbers := renumber(hosts)
	prefix := mappedHosts
	switch {
	case h.order == nil:
		prefix = ""
	case slices.Equal(numbers, dealt(sizes)):
		prefix = cyclicHosts
	default:
		pairs = nil
		for _, n := range numbers {
			pairs = appendPair(pairs, 1, n)
		}
		return prefix + formatPairs(pairs, ".")
	}
	if slices.Equal(sizes, evenly(len(hosts), len(sizes))) {
		return prefix + strconv.Itoa(len(sizes))
	}
	return prefix + formatPairs(pairs, "+")
}

// hostVariants places p ranks in some ways: all on one host, each alone, round the
// hosts, and on hosts of different sizes.
func hostVariants(p int) []string {
	if p == 1 {
		return []string{"1x1"}
	}
	all := []string{"1", strconv.Itoa(p), "cyclic:2"}
	if p > 2 {
		all = append(all, fmt.Sprintf("1+%d", p-1))
	}
	if p > 3 {
		scattered := make([]int, p)
		for r := range scattered {
			scattered[r] = r * r / 3 % 4
		}
		all = append(all, FormatHosts(scattered), fmt.Sprintf("cyclic:%d+1+%d", p-p/2-1, p/2))
	}
	return all
}

// betweenParam says what the leaders of hosts do: one algorithm is for short vectors,
// the other for long ones.
func betweenParam(short, long string, cost func(c call, between string, n float64) model.Cost) Param {
	return Param{
		Key: "between", Values: short + "|" + long,
		Doc: "what is done between hosts; if not given, what costs less if a start-up costs as much as 8K bytes",
		choose: func(c call) value {
			m := model.Model{Ts: startupBytes, Tw: 1}
			time := func(between string) float64 { return m.Time(cost(c, between, float64(c.bytes))) }
			if time(long) < time(short) {
				return value{text: long}
			}
			return value{text: short}
		},
	}
}

// leadersParam says how many ranks of a host talk to other hosts. Its default depends on
// what is done between them.
func leadersParam(standard func(c call) int) Param {
	return Param{
		Key: "leaders", Values: "a number",
		Doc: "how many ranks of each host talk to other hosts, each with its piece of the vector; " +
			"with one, trees within the hosts; with more, each piece goes straight to and from its leader",
		parse:  parseNumber,
		choose: func(c call) value { return numberOf(standard(c)) },
		check: func(c call, v value) error {
			if most := c.hostSizes().smallest; v.number < 1 || v.number > most {
				return fmt.Errorf("want 1 to %d, as many as the smallest host has ranks", most)
			}
			return nil
		},
		variants: func(p int) []string {
			switch smallest := leastOnHost(p); {
			case smallest < 2:
				return nil
			case smallest == 2:
				return []string{"2"}
			default:
				return []string{"2", strconv.Itoa(smallest)}
			}
		},
		// Of pieces that are not equally long, leaders do not begin and end at once, and then the
		// formula is no price: only the simulation compares other numbers than the default.
		candidates: func(call) []value { return nil },
	}
}

// leastOnHost returns the fewest ranks on a host where p ranks are placed as they are if
// nothing is said of hosts.
func leastOnHost(p int) int {
	g := int(math.Round(math.Sqrt(float64(p))))
	least := p / g // of g hosts
	if rest := p % g; rest > 0 {
		least = min(least, rest) // the last of hosts of g
	}
	return min(least, g)
}

// one leader per host.
func oneLeader(call) int { return 1 }
