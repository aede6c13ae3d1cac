package examples_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages whose code is tried here. A block marked go is one of three:
//
//   - a program, which begins with "package main": it is run, as its only rank;
//   - a quotation, if the line before is a comment <!-- FILE -->: the file holds it;
//   - a fragment, which uses ctx and c: it is run on four ranks, or once if it
//     calls chorale.Run itself.
//
// A block marked text that follows is what it prints, in any order of lines. A
// block marked console holds commands after "$ " and lines that each prints.
var pages = []string{"../README.md", "../docs/api.md", "../docs/architecture.md", "../docs/guide.md"}

// A block is a piece of a page between two fences.
type block struct {
	page     string
	line     int // of its first line, counted from 1
	language string
	quotes   string // the file that it quotes
	text     string
	prints   string // what the block after it says that it prints
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var quotation = regexp.MustCompile(`^<!-- (\S+) -->$`)

// blocks returns the blocks of a page.
func blocks(t *testing.T, page string) (all []block) {
	t.Helper()
	inside, before := false, ""
	for i, line := range strings.Split(read(t, page), "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && inside:
			inside = false
			last := len(all) - 1
			if all[last].language == "text" && last > 0 && all[last-1].language == "go" {
				all[last-1].prints = all[last].text
			}
		case fence:
			inside = true
			b := block{page: page, line: i + 2, language: language}
			if m := quotation.FindStringSubmatch(before); m != nil {
				b.quotes = m[1]
			}
			all = append(all, b)
		case inside:
			all[len(all)-1].text += line + "\n"
		}
		before = line
	}
	return all
}

// each calls f for the blocks of all pages in one language, and fails if there are
// none.
func each(t *testing.T, language string, f func(b block)) {
	t.Helper()
	found := false
	for _, page := range pages {
		for _, b := range blocks(t, page) {
			if b.language == language {
				found = true
				f(b)
			}
		}
	}
	if !found {
		t.Errorf("no page has a block of %s", language)
	}
}

func (b block) isProgram() bool { return strings.HasPrefix(b.text, "package main\n") }

func TestTheProgramsOnThePagesRun(t *testing.T) {
	each(t, "go", func(b block) {
		if !b.isProgram() {
			return
		}
		if out := goRun(t, b.String(), b.text); b.prints != "" {
			checkLines(t, b.String(), out, b.prints)
		}
	})
}

func TestTheQuotationsOnThePagesStandInTheirFiles(t *testing.T) {
	each(t, "go", func(b block) {
		if b.quotes != "" && !strings.Contains(flat(read(t, filepath.Join("..", b.quotes))), flat(b.text)) {
			t.Errorf("%v is not in %s", b, b.quotes)
		}
	})
}

// flat leaves out the indentation of lines, and empty lines.
func flat(text string) string {
	var b strings.Builder
	b.WriteString("\n")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// All fragments are parts of one program, which prints a line before each.
func TestTheFragmentsOnThePagesRunAndPrintWhatThePagesSay(t *testing.T) {
	var fragments []block
	var program, calls strings.Builder
	program.WriteString(preamble)
	each(t, "go", func(b block) {
		if b.isProgram() || b.quotes != "" {
			return
		}
		n := len(fragments)
		fragments = append(fragments, b)
		fmt.Fprintf(&program, "func fragment%d(ctx context.Context, c *chorale.Comm) error {\n//line %v\n%sreturn nil\n}\n", n, b, b.text)
		ranks := 4
		if strings.Contains(b.text, "chorale.Run(") {
			ranks = 1
		}
		fmt.Fprintf(&calls, "try(%d, fragment%d)\n", ranks, n)
	})
	fmt.Fprintf(&program, "func main() {\n%s}\n", &calls)
	printed := strings.Split(goRun(t, "the fragments", program.String()), separator+"\n")
	if len(printed) != len(fragments)+1 {
		t.Fatalf("%d pieces of output: want one for each of %d fragments", len(printed)-1, len(fragments))
	}
	for i, b := range fragments {
		checkLines(t, b.String(), printed[i+1], b.prints)
	}
}

const separator = "== fragment"

const preamble = `package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

var _ = []any{errors.New, math.Abs, slices.Max[[]int], time.Second, sched.Parse}

func try(ranks int, f chorale.Func) {
	fmt.Println("` + separator + `")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := chorale.Run(ctx, ranks, f); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

`

// goRun runs a program of this module, and returns what it prints.
func goRun(t *testing.T, name, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, &stderr)
	}
	return string(out)
}

// programLine is the line of a program in an error: of a fragment, that of the page.
var programLine = regexp.MustCompile(`\([\w.-]+/[\w.-]+:\d+\)`)

// checkLines compares what is printed with what should be, in any order of lines.
func checkLines(t *testing.T, name, got, want string) {
	t.Helper()
	got, want = programLine.ReplaceAllString(got, "(line)"), programLine.ReplaceAllString(want, "(line)")
	if sorted(got) != sorted(want) {
		t.Errorf("%s prints\n%s\nthe page says\n%s", name, sorted(got), sorted(want))
	}
}

func sorted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A command on a page prints the lines after it, in that order; other lines may
// come between.
func TestTheCommandsOnThePagesPrintWhatThePagesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	bin := filepath.Join(t.TempDir(), "chorale"+exe())
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/chorale").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	each(t, "console", func(b block) {
		rest := ""
		for line := range strings.Lines(b.text) {
			line = strings.TrimSpace(line)
			if command, ok := strings.CutPrefix(line, "$ chorale "); ok {
				out, err := exec.Command(bin, strings.Fields(command)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: chorale %s: %v\n%s", b, command, err, out)
				}
				rest = string(out)
				continue
			}
			_, after, found := strings.Cut(rest, line)
			if !found && line != "…" {
				t.Errorf("%v: no command prints %q there; what is left is\n%s", b, line, rest)
			} else if found {
				rest = after
			}
		}
	})
}
