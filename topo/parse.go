package topo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A SyntaxError is a mistake in the text of a topology or a placement.
type SyntaxError struct {
	What string // "topology" or "placement"
	Text string // the text
	At   int    // the offset of the mistake, in bytes
	Want string // what would be right there
}

func (e *SyntaxError) Error() string {
	found := "nothing more"
	if e.At < len(e.Text) {
		found = strconv.Quote(e.Text[e.At:])
	}
	return fmt.Sprintf("%s %q, character %d: found %s, want %s", e.What, e.Text, e.At+1, found, e.Want)
}

// Known returns the names that could stand at the mistake, if a name belongs there.
func (e *SyntaxError) Known() []string {
	switch {
	case e.At > 0:
		return nil
	case e.What == "placement":
		return []string{"identity", "row-major", "column-major", "gray", "random"}
	}
	return slices.Sorted(maps.Keys(families))
}

// A family is one kind of topology: its text form and its constructor.
type family struct {
	form string            // an example of its text
	key  string            // may stand before its sizes
	sep  string            // between its sizes; empty if it has none
	size int               // the number of sizes; 0 for any number
	fit  func(p int) []int // the sizes where none are given; nil if they must be
	make func(p int, sizes []int) (Topology, error)
	read func(spec string, at, p int) (Topology, error) // reads what follows the name itself; nil for sizes
}

// families is the only list of the topologies that Parse knows.
var families = map[string]family{
	"linear":    {form: "linear", make: ofSize(NewLinear)},
	"ring":      {form: "ring", make: ofSize(NewRing)},
	"mesh":      {form: "mesh:4x4", sep: "x", fit: nearSquare, make: ofSizes(NewMesh)},
	"torus":     {form: "torus:8x8x8", sep: "x", fit: nearSquare, make: ofSizes(NewTorus)},
	"hypercube": {form: "hypercube", make: ofSize(NewHypercube)},
	"tree":      {form: "tree", make: ofSize(NewTree)},
	"star":      {form: "star", make: ofSize(NewStar)},
	"full":      {form: "full", make: ofSize(NewFull)},
	"hosts":     {form: hostsForm, sep: "x", read: parseHosts},
	"fattree": {form: "fattree:k=4", key: "k=", sep: ",", size: 1, fit: leastFatTree, make: func(_ int, s []int) (Topology, error) {
		return made(NewFatTree(s[0]))
	}},
	"dragonfly": {form: "dragonfly:4,2,2", sep: ",", size: 3, make: func(_ int, s []int) (Topology, error) {
		return made(NewDragonfly(s[0], s[1], s[2]))
	}},
}

// Forms lists the texts that [Parse] reads, one example for each kind, sorted.
func Forms() []string {
	var forms []string
	for _, f := range families {
		forms = append(forms, f.form)
	}
	slices.Sort(forms)
	return forms
}

// Parse returns the topology of p processors that spec names: one of the
// [Forms], or the name of a file that [ReadGraph] reads. A mesh and a torus without
// sizes are the nearest to a square, and a fat tree is the least that has p hosts or
// more. An error is a
// *[SyntaxError] if the text is wrong. If its sizes do not fit p, the error
// says which do.
func Parse(spec string, p int) (Topology, error) {
	name, args, given := strings.Cut(spec, ":")
	f, ok := families[name]
	if !ok {
		return parseFile(spec, p)
	}
	if err := checkProcessors("topology "+name, p); err != nil {
		return nil, err
	}
	var sizes []int
	switch {
	case f.sep == "" && given:
		return nil, &SyntaxError{"topology", spec, len(name), "no sizes: there is a place for every rank"}
	case f.fit != nil && !given:
		sizes = f.fit(p)
	case f.sep != "" && !given:
		return nil, &SyntaxError{"topology", spec, len(spec), "sizes, as in " + f.form}
	case f.read != nil:
		t, err := f.read(spec, len(name)+1, p)
		var syntax *SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			err = fmt.Errorf("topology %w", err)
		}
		return t, err
	case given:
		var err error
		args = strings.TrimPrefix(args, f.key)
		if sizes, err = parseSizes("topology", spec, len(spec)-len(args), f); err != nil {
			return nil, err
		}
	}
	t, err := f.make(p, sizes)
	if err != nil {
		return nil, fmt.Errorf("topology %w", err)
	}
	if n := t.Processors(); n != p {
		return nil, fmt.Errorf("topology %w", misfit(t.String(), n, p))
	}
	return t, nil
}

// misfit is the error for a topology that has another number of processors than there
// are ranks.
func misfit(name string, processors, ranks int) error {
	return fmt.Errorf("%s has %d processors: want %d, one for each rank", name, processors, ranks)
}

// ProcessorsOf returns the number of processors of the topology that spec names, if the
// sizes in spec say so, as in "mesh:4x4" and "hosts:4x8". It is false for any other text.
func ProcessorsOf(spec string) (p int, known bool) {
	name, args, given := strings.Cut(spec, ":")
	f, ok := families[name]
	if !ok || !given || f.sep == "" {
		return 0, false
	}
	at := len(name) + 1
	if f.read != nil {
		text, _, _ := strings.Cut(args, ",")
		if !strings.ContainsAny(text, "x+") {
			return 0, false // a number of hosts
		}
		_, p, err := hostRuns(spec, at, text)
		return p, err == nil
	}
	args = strings.TrimPrefix(args, f.key)
	sizes, err := parseSizes("topology", spec, len(spec)-len(args), f)
	if err != nil {
		return 0, false
	}
	t, err := f.make(1, sizes)
	if err != nil {
		return 0, false
	}
	return t.Processors(), true
}

// nearSquare returns two sizes that are as equal as can be, the smaller one first.
func nearSquare(p int) []int {
	if p > math.MaxInt32 { // which has too many links
		return []int{p}
	}
	rows := int(math.Sqrt(float64(p)))
	for p%rows != 0 {
		rows--
	}
	return []int{rows, p / rows}
}

// leastFatTree returns the least k for which a fat tree has p hosts or more.
func leastFatTree(p int) []int {
	const rounding = 1e-9
	return []int{2 * int(math.Ceil(math.Cbrt(4*float64(p))/2-rounding))}
}

// parseFile reads the graph in a file. The file may have any name that is not
// another topology's.
func parseFile(name string, p int) (Topology, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &SyntaxError{"topology", name, 0, "a file or one of " + strings.Join(Forms(), ", ")}
	}
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	defer file.Close()
	g, err := ReadGraph(file, name, p)
	if err != nil {
		return nil, fmt.Errorf("topology %w", err)
	}
	return g, nil
}

// parseSizes reads the positive numbers of text from the offset at on.
func parseSizes(what, text string, at int, f family) (sizes []int, err error) {
	for i, word := range strings.Split(text[at:], f.sep) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || word[0] == '+' {
			return nil, &SyntaxError{what, text, at, "a size, as in " + f.form}
		}
		if f.size > 0 && i == f.size {
			return nil, &SyntaxError{what, text, at - 1, "no more sizes, as in " + f.form}
		}
		sizes = append(sizes, n)
		at += len(word) + len(f.sep)
	}
	if len(sizes) < f.size {
		return nil, &SyntaxError{what, text, len(text), fmt.Sprintf("%q and a size, as in %s", f.sep, f.form)}
	}
	return sizes, nil
}

// ofSize adapts a constructor whose argument is the number of processors.
func ofSize[T Topology](build func(p int) (T, error)) func(int, []int) (Topology, error) {
	return func(p int, _ []int) (Topology, error) { return made(build(p)) }
}

// ofSizes adapts a constructor whose arguments are the sizes.
func ofSizes[T Topology](build func(...int) (T, error)) func(int, []int) (Topology, error) {
	return func(_ int, sizes []int) (Topology, error) { return made(build(sizes...)) }
}

// made returns a nil Topology, and not a nil pointer in one, on error.
func made[T Topology](t T, err error) (Topology, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}
