package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/launch"
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
func (c *choice) Type() string   { return "WORD" }

func (c *choice) Set(text string) error {
	if err := oneOf(text, c.candidates); err != nil {
		return err
	}
	c.value = text
	return nil
}

// oneOf returns an error unless text is one of the known words.
func oneOf(text string, known []string) error {
	if slices.Contains(known, text) {
		return nil
	}
	return &sched.UnknownError{What: "word", Name: text, Known: known}
}

// oneOfText lists words in a flag's help, as in "table, csv or json".
func oneOfText(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// transportChoice is the value of --transport: one of those of chorale run, or of some
// more.
func transportChoice(more ...string) choice {
	return choice{launch.Transports[0], slices.Concat(launch.Transports, more)}
}

// addFormat adds the flag --format. Its default is the first format.
func addFormat(cmd *cobra.Command, formats ...string) *choice {
	format := &choice{formats[0], formats}
	cmd.Flags().Var(format, "format", "how to print the answer: "+oneOfText(formats))
	return format
}

// printJSON prints a value as one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
