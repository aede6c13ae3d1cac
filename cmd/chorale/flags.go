package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// count is the value of a flag: a number of ranks.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "N" }

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRanks {
		return fmt.Errorf("want a number of ranks, 1 to %d", maxRanks)
	}
	*c = count(n)
	return nil
}

// maxRanks bounds the numbers of ranks.
const maxRanks = 1 << 24

// ranges is the value of a flag: several numbers of ranks, as in 8 or 1..64,100.
// Single is set for one number that is not a range.
type ranges struct {
	text   string
	values []int
	single bool
}

func (r *ranges) String() string { return r.text }
func (r *ranges) Type() string   { return "P|LO..HI" }

func (r *ranges) Set(text string) error {
	r.text, r.values, r.single = text, nil, !strings.ContainsAny(text, ".,")
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "..")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < 1 || hi < lo || hi > maxRanks {
			return fmt.Errorf("want numbers of ranks, as in 8, 1..64 or 2,4,10..20, up to %d", maxRanks)
		}
		for p := lo; p <= hi; p++ {
			r.values = append(r.values, p)
		}
	}
	slices.Sort(r.values)
	r.values = slices.Compact(r.values)
	return nil
}

// size is the value of a flag: a number of bytes, as in 8, 64K or 4M.
type size int

func (s *size) String() string { return algo.FormatBytes(int(*s)) }
func (s *size) Type() string   { return "BYTES" }

func (s *size) Set(text string) error {
	n, err := algo.ParseBytes(text)
	if err != nil {
		return err
	}
	*s = size(n)
	return nil
}

// addMemory adds the flag --max-memory.
func addMemory(cmd *cobra.Command, memory *size) {
	*memory = sched.DefaultMemory
	cmd.Flags().Var(memory, "max-memory", "the most memory that the work may take, by an estimate")
}

// choice is the value of a flag: one of a few words.
type choice struct {
	value      string
	candidates []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.candidates, "|") }

func (c *choice) Set(text string) error {
	if !slices.Contains(c.candidates, text) {
		return fmt.Errorf("want one of %s", strings.Join(c.candidates, ", "))
	}
	c.value = text
	return nil
}

// addFormat adds the flag --format. Its default is the first format.
func addFormat(cmd *cobra.Command, formats ...string) *choice {
	format := &choice{formats[0], formats}
	cmd.Flags().Var(format, "format", "how to print the answer")
	return format
}

// printJSON prints a value as one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
