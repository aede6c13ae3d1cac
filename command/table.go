package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// lineWidth is the number of columns that help and tables fit in.
const lineWidth = 80

// minLastCell is how many columns the last cell of a line has at least.
const minLastCell = 16

// printTable prints lines of cells in columns, aligned left. The last cell of a line goes on
// below itself where it is too long for a line of the terminal, and so do others that leave
// it no room.
func printTable(w io.Writer, lines [][]string) error {
	widths := columnWidths(lines, 1)
	shrink(widths, lines, lineWidth-minLastCell-2)
	var out bytes.Buffer
	for _, line := range lines {
		n := len(line) - 1
		cells := make([][]string, n, n+1)
		for i, cell := range line[:n] {
			cells[i] = fold(cell, widths[i])
		}
		columns := append(slices.Clone(widths[:n]), 0)
		last := wrap(line[n], max(lineWidth-tableWidth(columns), minLastCell))
		writeCells(&out, append(cells, last), columns, n+1)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// roomForLast reports whether printTable need not narrow any column.
func roomForLast(lines [][]string) bool {
	return tableWidth(columnWidths(lines, 1))+2+minLastCell <= lineWidth
}

// printRows prints lines of cells, of which the first is the head. The first columns, as many
// as left says, are aligned left, the others right. If that is wider than columns says, those
// of the first columns, as many as keys says, that have the same cell in all lines stand once
// above the table. If it still is, the longest cells go on below themselves.
func printRows(w io.Writer, lines [][]string, keys, left, columns int) error {
	var out bytes.Buffer
	widths := columnWidths(lines, 0)
	if tableWidth(widths) > columns {
		var same []string
		lines, same, left = liftSame(lines, keys, left)
		if len(same) > 0 {
			fmt.Fprintf(&out, "%s\n\n", hang(strings.Join(same, "; "), "  "))
		}
		widths = columnWidths(lines, 0)
		shrink(widths, lines, columns)
	}
	for _, line := range lines {
		cells := make([][]string, len(line))
		for i, cell := range line {
			cells[i] = fold(cell, widths[i])
		}
		writeCells(&out, cells, widths, left)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// liftSame takes those of the first columns out of lines that have the same cell in all of
// them but the head. It returns the lines, what the columns say, and how many of those that
// are aligned left remain.
func liftSame(lines [][]string, keys, left int) (rest [][]string, same []string, remain int) {
	lifted := make([]bool, len(lines[0]))
	remain = left
	for i := range keys {
		lifted[i] = true
		for _, line := range lines[1:] {
			lifted[i] = lifted[i] && line[i] == lines[1][i]
		}
		if lifted[i] {
			same = append(same, strings.ToLower(lines[0][i])+" "+lines[1][i])
			if i < left {
				remain--
			}
		}
	}
	for _, line := range lines {
		var cells []string
		for i, cell := range line {
			if !lifted[i] {
				cells = append(cells, cell)
			}
		}
		rest = append(rest, cells)
	}
	return rest, same, remain
}

// columnWidths returns how wide the columns are, but for the last cells of each line, as many
// as without says.
func columnWidths(lines [][]string, without int) (widths []int) {
	for _, line := range lines {
		for i, cell := range line[:len(line)-without] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// tableWidth is the width of columns with two spaces between them.
func tableWidth(widths []int) int {
	total := 2 * max(len(widths)-1, 0)
	for _, n := range widths {
		total += n
	}
	return total
}

// shrink narrows the widest columns until all are as wide as columns says, or none is of
// more than minFolded. Columns of numbers stay as they are.
func shrink(widths []int, lines [][]string, columns int) {
	const minFolded = 8
	numbers := make([]bool, len(widths))
	for i := range widths {
		numbers[i] = !slices.ContainsFunc(lines[1:], func(line []string) bool { return i < len(line) && !isNumber(line[i]) })
	}
	for excess := tableWidth(widths) - columns; excess > 0; excess-- {
		widest := -1
		for i, n := range widths {
			if !numbers[i] && n > minFolded && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// isNumber reports whether a cell holds a number, or stands for one.
func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(strings.TrimPrefix(cell, "~"), 64)
	return err == nil || utf8.RuneCountInString(cell) <= 1
}

// writeCells writes a line of cells, each of which may have several lines itself. The first
// cells, as many as left says, are aligned left, the others right.
func writeCells(out *bytes.Buffer, cells [][]string, widths []int, left int) {
	height := 1
	for _, cell := range cells {
		height = max(height, len(cell))
	}
	for k := range height {
		var text strings.Builder
		for i, cell := range cells {
			part := ""
			if k < len(cell) {
				part = cell[k]
			}
			gap := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(part), 0))
			if i < left {
				text.WriteString(part + gap + "  ")
			} else {
				text.WriteString(gap + part + "  ")
			}
		}
		out.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
}

// fold breaks a cell into lines of so many columns at most: between words if it can, or
// behind punctuation, or else anywhere.
func fold(cell string, columns int) (lines []string) {
	if utf8.RuneCountInString(cell) <= columns {
		return []string{cell}
	}
	for _, line := range wrap(cell, columns) {
		rest := []rune(line)
		for len(rest) > columns {
			end := columns
			for i, r := range rest[:columns] {
				if strings.ContainsRune(",;:+-/=", r) && i > 0 && (r == ',' || end == columns || rest[end-1] != ',') {
					end = i + 1
				}
			}
			lines, rest = append(lines, string(rest[:end])), rest[end:]
		}
		lines = append(lines, string(rest))
	}
	return lines
}

// hang breaks a text into lines that fit the terminal. All but the first begin with indent.
func hang(text, indent string) string {
	if utf8.RuneCountInString(text) <= lineWidth {
		return text
	}
	return strings.Join(fold(text, lineWidth-utf8.RuneCountInString(indent)), "\n"+indent)
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
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", helpText(cmp.Or(cmd.Long, cmd.Short)), strings.ReplaceAll(cmd.UseLine(), " | ", "\n  "+program()+" "))
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
