package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// lineWidth is the number of columns that help and tables fit in.
const lineWidth = 80

// printTable prints lines of cells in columns. The last cell of a line goes on below itself
// where it is too long for a line of the terminal.
func printTable(w io.Writer, lines [][]string) error {
	var widths []int
	for _, line := range lines {
		for i, cell := range line[:len(line)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	left := 0
	for _, n := range widths {
		left += n + 2
	}
	var out bytes.Buffer
	for _, line := range lines {
		for i, cell := range line[:len(line)-1] {
			out.WriteString(cell + strings.Repeat(" ", widths[i]+2-utf8.RuneCountInString(cell)))
		}
		last := wrap(line[len(line)-1], max(lineWidth-left, 20))
		text := strings.Join(last, "\n"+strings.Repeat(" ", left))
		out.WriteString(text + "\n")
	}
	for line := range bytes.Lines(out.Bytes()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(string(line), " \n")); err != nil {
			return err
		}
	}
	return nil
}

// wrap breaks a text between words into lines of so many columns at most, but not before
// a parenthesis: what stands in it belongs to the word before.
func wrap(text string, columns int) (lines []string) {
	line := ""
	for word := range strings.SplitSeq(strings.ReplaceAll(strings.Join(strings.Fields(text), " "), " (", "\x00("), " ") {
		word = strings.ReplaceAll(word, "\x00", " ")
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// entry is the first line of an entry of a list in a help text: a name, and what it is.
var entry = regexp.MustCompile(`^( +\S+ {2,})(.*)$`)

// helpText breaks the paragraphs of a help text into lines, and the entries of lists
// within. Other indented lines stay as they are.
func helpText(text string) string {
	var out []string
	prefix, paragraph := "", ""
	end := func() {
		if paragraph != "" {
			hanging := utf8.RuneCountInString(prefix)
			out = append(out, prefix+strings.Join(wrap(paragraph, lineWidth-hanging), "\n"+strings.Repeat(" ", hanging)))
		}
		prefix, paragraph = "", ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		begins := entry.FindStringSubmatch(line)
		switch {
		case line != "" && line[0] != ' ', prefix != "" && strings.HasPrefix(line, strings.Repeat(" ", len(prefix))):
			paragraph += " " + line
		case begins != nil:
			end()
			prefix, paragraph = begins[1], begins[2]
		default:
			end()
			out = append(out, line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// printHelp prints the help of a verb.
func printHelp(cmd *cobra.Command) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", helpText(cmp.Or(cmd.Long, cmd.Short)), strings.ReplaceAll(cmd.UseLine(), " | ", "\n  chorale "))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nVerbs:\n")
		var lines [][]string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				lines = append(lines, []string{"  " + c.Name(), c.Short})
			}
		}
		printTable(&b, lines) // a bytes.Buffer never fails
	}
	fmt.Fprintf(&b, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(lineWidth), " \n"))
	_, err := cmd.OutOrStdout().Write(b.Bytes())
	return err
}
