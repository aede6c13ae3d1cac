package join

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxHosts = 1 << 16 // names that a host list stands for
	maxName  = 255     // bytes of a name
)

var errTooManyNames = fmt.Errorf("it has more than %d names", maxHosts)

// expandHosts returns the names that one of Slurm's host lists stands for, in order:
//
//	list   = item *("," item)                  commas in brackets separate ranges
//	item   = text *("[" ranges "]" text)
//	ranges = range *("," range)
//	range  = digits ["-" digits]               the width of the first pads with zeros
//
// With several brackets in an item, the last one runs fastest.
func expandHosts(list string) (hosts []string, err error) {
	for {
		item, rest, more, err := cutItem(list)
		if err != nil {
			return nil, err
		}
		names, err := expandItem(item, maxHosts-len(hosts))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, names...)
		if !more {
			return hosts, nil
		}
		list = rest
	}
}

// cutItem cuts a list at its first comma outside of brackets.
func cutItem(list string) (item, rest string, more bool, err error) {
	open := false
	for i, c := range list {
		switch {
		case c == '[' && open:
			return "", "", false, errors.New("there are brackets in brackets")
		case c == ']' && !open:
			return "", "", false, errors.New("a closing bracket has no opening one")
		case c == '[' || c == ']':
			open = !open
		case c == ',' && !open:
			return list[:i], list[i+1:], true, nil
		}
	}
	if open {
		return "", "", false, errors.New("a bracket is not closed")
	}
	return list, "", false, nil
}

// expandItem returns the names of an item of which the brackets match; at most room.
func expandItem(item string, room int) ([]string, error) {
	if item == "" {
		return nil, errors.New("a name is empty")
	}
	names := []string{""}
	for item != "" {
		text, rest, bracket := strings.Cut(item, "[")
		variants := []string{text}
		if bracket {
			var ranges string
			ranges, item, _ = strings.Cut(rest, "]")
			numbers, err := expandRanges(ranges, room)
			if err != nil {
				return nil, err
			}
			for i := range numbers {
				numbers[i] = text + numbers[i]
			}
			variants = numbers
		} else {
			item = ""
		}
		if len(names)*len(variants) > room {
			return nil, errTooManyNames
		}
		tooLong := func(name string) bool { return len(name) > maxName-len(names[0]) }
		if slices.ContainsFunc(variants, tooLong) {
			return nil, fmt.Errorf("a name has more than %d bytes", maxName)
		}
		product := make([]string, 0, len(names)*len(variants))
		for _, name := range names {
			for _, v := range variants {
				product = append(product, name+v)
			}
		}
		names = product
	}
	return names, nil
}

// expandRanges returns the numbers between two brackets; at most room.
func expandRanges(ranges string, room int) (numbers []string, err error) {
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.ParseUint(first, 10, 63)
		hi, err2 := strconv.ParseUint(last, 10, 63)
		if err != nil || err2 != nil || lo > hi || len(first) > maxName {
			return nil, fmt.Errorf("%.80q is no range of numbers, as in 08-11", r)
		}
		if hi-lo >= uint64(max(0, room-len(numbers))) {
			return nil, errTooManyNames
		}
		for n := lo; n <= hi; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	return numbers, nil
}
