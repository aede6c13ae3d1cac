package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chorale-go/chorale/algo"
)

// A list is the value of a flag that names several things: separated by commas, by
// repeating the flag, or both. What is named twice counts once. The first naming replaces
// the default.
type list[T cmp.Ordered] struct {
	values []T
	text   string // as given

	what   string                         // the placeholder in the help
	parse  func(item string) ([]T, error) // what an item names
	format func(T) string                 // of a default
	joins  func(piece string) bool        // see split; nil if every comma separates items
	sorted bool                           // the order of naming does not count
}

func (l *list[T]) Type() string { return l.what }

func (l *list[T]) String() string {
	var words []string
	for _, v := range l.values {
		if len(words) == 16 {
			words = append(words, "…")
			break
		}
		words = append(words, l.format(v))
	}
	return strings.Join(words, ",")
}

func (l *list[T]) Set(text string) error {
	values := l.values
	if l.text == "" {
		values = nil
	}
	for _, item := range l.split(text) {
		more, err := l.parse(item)
		if err != nil {
			return err
		}
		values = append(values, more...)
	}
	if l.sorted {
		slices.Sort(values)
		l.values = slices.Compact(values)
	} else {
		l.values = unique(values)
	}
	l.text = strings.TrimPrefix(l.text+","+text, ",")
	return nil
}

// split returns the items of a text. A piece after a comma may belong to the item before
// it.
func (l *list[T]) split(text string) (items []string) {
	for i, piece := range strings.Split(text, ",") {
		if i > 0 && l.joins != nil && l.joins(piece) {
			items[len(items)-1] += "," + piece
		} else {
			items = append(items, piece)
		}
	}
	return items
}

// unique returns the values in their order, each once.
func unique[T comparable](values []T) (once []T) {
	for _, v := range values {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}

// several marks the values of flags that may be given more than once.
func (l *list[T]) several() {}

// orNone returns the values, or one that stands for the default if there are none.
func (l *list[T]) orNone() []T {
	if len(l.values) == 0 {
		return make([]T, 1)
	}
	return l.values
}

func itself(s string) string { return s }

// numbersOfRanks lists numbers of ranks and ranges of them, as in 2,4,10..20.
func numbersOfRanks() list[int] {
	return list[int]{what: "P", format: strconv.Itoa, sorted: true, parse: func(item string) (values []int, err error) {
		first, last, isRange := strings.Cut(item, "..")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < 1 || hi < lo || hi > maxRanks {
			return nil, fmt.Errorf("want numbers of ranks, as in 8, 1..64 or 2,4,10..20, up to %d", maxRanks)
		}
		values = make([]int, 0, hi-lo+1)
		for p := lo; p <= hi; p++ {
			values = append(values, p)
		}
		return values, nil
	}}
}

// sizes lists numbers, as in 8,64K,4M, of what is named.
func sizes(of string, standard ...int) list[int] {
	return list[int]{values: standard, what: strings.ToUpper(of), format: algo.FormatBytes, parse: func(item string) ([]int, error) {
		n, err := algo.ParseBytes(item)
		if err != nil {
			err = fmt.Errorf("want numbers of %s, as in 8,64K,4M", of)
		}
		return []int{n}, err
	}}
}

// algorithmList lists algorithms. A piece with = is a parameter of the one before it.
func algorithmList() list[string] {
	return list[string]{what: "A", format: itself, parse: nonempty("an algorithm"), joins: func(piece string) bool { return strings.Contains(piece, "=") }}
}

// topologyList lists topologies. A piece that is a number, or has =, belongs to the one
// before it, as in dragonfly:4,2,2 and hosts:4x8,links=2.
func topologyList() list[string] {
	return list[string]{what: "T", format: itself, parse: nonempty("a topology"), joins: func(piece string) bool {
		_, err := strconv.Atoi(piece)
		return err == nil || strings.Contains(piece, "=")
	}}
}

func nonempty(what string) func(string) ([]string, error) {
	return func(item string) ([]string, error) {
		if item == "" {
			return nil, fmt.Errorf("want %s between two commas", what)
		}
		return []string{item}, nil
	}
}

// words lists some of a few words.
func words(of choice) list[string] {
	return list[string]{values: []string{of.value}, what: "WORD", format: itself, parse: func(item string) ([]string, error) {
		return []string{item}, oneOf(item, of.candidates)
	}}
}

// once is the value of a flag that names one thing: naming a second one is an error.
type once struct {
	pflag.Value
	given bool
}

func (o *once) Set(text string) error {
	if o.given {
		return fmt.Errorf("given twice: want it once, for it takes no list")
	}
	if err := o.Value.Set(text); err != nil {
		return err
	}
	o.given = true
	return nil
}

// onlyOnce has every flag that takes no list refuse to be given twice.
func onlyOnce(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, several := f.Value.(interface{ several() })
		_, slice := f.Value.(pflag.SliceValue)
		if !several && !slice && f.NoOptDefVal == "" {
			f.Value = &once{Value: f.Value}
		}
	})
	for _, c := range cmd.Commands() {
		onlyOnce(c)
	}
}

// skips are the reasons for which some of several combinations are left out.
type skips []error

// fewSkips is the number of reasons that are printed.
const fewSkips = 8

// print prints a line for each reason, but not for too many.
func (s skips) print(w io.Writer) {
	var reasons []string
	for _, why := range s {
		reasons = append(reasons, why.Error())
	}
	reasons = unique(reasons)
	for i, why := range reasons {
		if i == fewSkips && len(reasons) > fewSkips+1 {
			fmt.Fprintf(w, "skipped: and %d more like it\n", len(reasons)-i)
			return
		}
		fmt.Fprintf(w, "skipped: %s\n", why)
	}
}
