package examples_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const guide = "../docs/api.md"

func TestTheProgramInTheGuideForMPIUsersRuns(t *testing.T) {
	_, program, ok := strings.Cut(read(t, guide), "```go\n")
	program, _, ended := strings.Cut(program, "```\n")
	if !ok || !ended {
		t.Fatal("the guide has no Go program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", file).CombinedOutput()
	if want := "1 ranks: 1\n"; err != nil || string(out) != want {
		t.Errorf("%v, %q: want %q", err, out, want)
	}
}

func TestTheGuidesNameOnlyExistingIdentifiers(t *testing.T) {
	names := exported(t)
	names["T"], names["C"] = true, true // a type parameter; the language
	_, tables, _ := strings.Cut(read(t, guide), "## What differs")
	checkNames(t, names, tables, 200)
	checkNames(t, names, blocksOut(read(t, "../docs/guide.md")), 80)
}

// blocksOut returns a page without its blocks of code.
func blocksOut(page string) string {
	return regexp.MustCompile("(?s)\n```.*?\n```\n").ReplaceAllString(page, "\n")
}

// checkNames tests that the pieces of code in a text, of which there should be so
// many, name only what the package exports.
func checkNames(t *testing.T, names map[string]bool, text string, least int) {
	t.Helper()
	spans := regexp.MustCompile("`[^`]+`").FindAllString(text, -1)
	if len(spans) < least {
		t.Fatalf("%d pieces of code in the guide: want more", len(spans))
	}
	word := regexp.MustCompile(`\b([\w.]*\.)?([A-Z]\w*)`)
	for _, span := range spans {
		if strings.HasPrefix(span, "`Test") { // see TestEachPromiseOfTheGuideHasItsTest
			continue
		}
		if strings.Contains(span, "MPI") || strings.Contains(span, "CHORALE_") || strings.Contains(span, "…_init") {
			continue
		}
		for _, m := range word.FindAllStringSubmatch(span, -1) {
			ours := len(strings.TrimSuffix(m[1], ".")) <= 1 || m[1] == "sub." || m[1] == "chorale." || names[strings.TrimSuffix(m[1], ".")]
			if ours && !names[m[2]] {
				t.Errorf("%s: the package has no %s", span, m[2])
			}
		}
	}
}

// exported returns the exported names of the root package: functions, types,
// their methods and fields, constants and variables.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(parsed)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
