package algo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Param is a parameter of an algorithm, written key=value.
type Param struct {
	Key     string
	Default string // "" if the value is chosen for each call, as Doc says
	Values  string // the values: "descending|ascending", "a number", "bytes, as in 8K", "sizes, as in 4x4"
	Doc     string // the meaning, in one line

	parse      func(text string) (value, error) // nil means that the text is one of Values
	choose     func(c call) value               // where there is no Default
	check      func(c call, v value) error      // nil if every value that parses will do
	variants   func(p int) []string             // other values to verify p ranks with; nil means all words of Values
	candidates func(c call) []value             // values that may cost the least; nil means all words of Values
	pieces     func(c call, k int) value        // the value that cuts the vector in k pieces, of which some k is best
}

// A value is the value of a parameter.
type value struct {
	text   string // in its canonical form
	number int
	sizes  []int
}

// split separates the keys and values of "key=value".
func (a *Algorithm) split(params []string) (map[string]string, error) {
	given := make(map[string]string)
	for _, param := range params {
		key, text, ok := strings.Cut(param, "=")
		_, twice := given[key]
		switch {
		case !ok:
			return nil, fmt.Errorf("%q: want key=value", param)
		case !slices.ContainsFunc(a.Params, func(p Param) bool { return p.Key == key }):
			return nil, fmt.Errorf("%s has no parameter %q: want %s", a.Name, key, a.keys())
		case twice:
			return nil, fmt.Errorf("%s is given twice: want it once", key)
		}
		given[key] = text
	}
	return given, nil
}

func (a *Algorithm) keys() string {
	if len(a.Params) == 0 {
		return "none"
	}
	var keys []string
	for _, p := range a.Params {
		keys = append(keys, p.Key)
	}
	return strings.Join(keys, ", ")
}

// set gives p the value that was given, or else its default, and reports whether
// the value differs from the default.
func (k *call) set(p *Param, given map[string]string) (differs bool, err error) {
	standard, err := p.standard(*k)
	if err != nil {
		return false, err
	}
	k.values[p.Key] = standard
	text, ok := given[p.Key]
	if !ok {
		return false, nil
	}
	v, err := p.read(text)
	if err == nil && p.check != nil {
		err = p.check(*k, v)
	}
	if err != nil {
		return false, fmt.Errorf("%s=%s: %w", p.Key, text, err)
	}
	k.values[p.Key] = v
	return v.text != standard.text, nil
}

func (p *Param) standard(c call) (value, error) {
	if p.choose != nil {
		return p.choose(c), nil
	}
	return p.read(p.Default)
}

func (p *Param) read(text string) (value, error) {
	if p.parse != nil {
		return p.parse(text)
	}
	words := strings.Split(p.Values, "|")
	if !slices.Contains(words, text) {
		return value{}, fmt.Errorf("want %s", strings.Join(words, " or "))
	}
	return value{text: text}, nil
}

// parseNumber reads a whole number, 0 or more.
func parseNumber(text string) (value, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return value{}, fmt.Errorf("want a number, 0 or more")
	}
	return numberOf(n), nil
}

func numberOf(n int) value { return value{text: strconv.Itoa(n), number: n} }

// ParseBytes reads a number of bytes like 512, 8K, 4M or 1G, in powers of 1024,
// which may also be written Ki, Mi and Gi.
func ParseBytes(text string) (int, error) {
	digits, unit := strings.TrimSuffix(text, "i"), 0
	if i := strings.IndexAny(digits, "KMG"); i >= 0 && i == len(digits)-1 {
		digits, unit = digits[:i], strings.Index("_KMG", digits[i:])
	} else {
		digits = text
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > math.MaxInt>>(10*unit) {
		return 0, fmt.Errorf("want bytes, as in 512, 8K or 4M")
	}
	return n << (10 * unit), nil
}

// FormatBytes writes a number of bytes as [ParseBytes] reads it.
func FormatBytes(n int) string {
	unit := ""
	for _, u := range []string{"K", "M", "G"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return strconv.Itoa(n) + unit
}

func parseBytes(text string) (value, error) {
	n, err := ParseBytes(text)
	return bytesOf(n), err
}

func bytesOf(n int) value { return value{text: FormatBytes(n), number: n} }

// parseSizes reads a list of sizes like 4x4.
func parseSizes(text string) (value, error) {
	var sizes []int
	for word := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return value{}, fmt.Errorf("want sizes, as in 4x4 or 2x3x4")
		}
		sizes = append(sizes, n)
	}
	return sizesOf(sizes...), nil
}

func sizesOf(sizes ...int) value {
	var words []string
	for _, n := range sizes {
		words = append(words, strconv.Itoa(n))
	}
	return value{text: strings.Join(words, "x"), sizes: sizes}
}

// maxPieces bounds what a segment size cuts a vector into, because a program
// has a step or two for each piece.
const maxPieces = 1 << 16

// pieces returns the number of segments that the vector of c makes: one if a
// segment is 0 bytes, or if the length of the vector is unknown.
func (c call) pieces(segment int) int {
	if segment == 0 || c.bytes == 0 {
		return 1
	}
	return (c.bytes-1)/segment + 1
}

// segmentParam is for algorithms that cut the vector in pieces.
var segmentParam = Param{
	Key: "segment", Default: "0", Values: "bytes, as in 8K",
	Doc:   "how large the pieces are, one after another; 0 keeps the vector whole",
	parse: parseBytes,
	check: func(c call, v value) error {
		if n := c.pieces(v.number); n > maxPieces {
			return fmt.Errorf("%d pieces of a vector of %d bytes: want at most %d", n, c.bytes, maxPieces)
		}
		return nil
	},
	variants: func(int) []string { return []string{"500", "334"} }, // 2 pieces, and 3
	pieces:   func(c call, k int) value { return bytesOf(c.segmentOf(k)) },
}

// segmentOf returns the size of a segment that cuts the vector in k pieces, or
// nearly so: 0 for one piece.
func (c call) segmentOf(k int) int {
	if k < 2 || c.bytes == 0 {
		return 0
	}
	return (c.bytes-1)/k + 1
}

// bestSegment is segmentParam for algorithms where pieces follow each other:
// one arrives when fill(p) others are under way. Its default minimizes the sum
// of start-ups and words.
func bestSegment(fill func(p int) float64) Param {
	p := segmentParam
	p.Default = ""
	p.Doc += "; if not given, the best if a start-up costs as much as 8K bytes"
	p.choose = func(c call) value { return bytesOf(c.segmentOf(c.bestPieces(fill(c.p)))) }
	p.variants = func(int) []string { return []string{"0", "500", "200"} } // 1 piece, 2, and 5
	return p
}

// startupBytes is the number of bytes that move in the time that a message
// takes to start, for choosing a number of pieces. It is of the right order for
// shared memory and for Ethernet alike. Pieces of fewer bytes than a cache line
// are not worth a message, whatever the formula says.
const (
	startupBytes = 8 << 10
	leastPiece   = 64
)

// bestPieces returns the number of pieces of n/k bytes to cut the vector in if
// they take (fill + k) messages one after another: k = √(fill nβ/α).
func (c call) bestPieces(fill float64) int {
	k := math.Sqrt(max(0, fill) * float64(c.bytes) / startupBytes)
	return max(1, min(int(math.Round(k)), c.bytes/leastPiece, maxPieces))
}
