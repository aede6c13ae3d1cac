package command

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	repository = ".."
	claimsPage = repository + "/docs/claims.md"
)

// claimIDs are the groups of claims and their sizes: G1 to G14, and so on.
var claimIDs = []struct {
	group string
	n     int
}{{"G", 14}, {"S", 4}, {"T", 2}, {"B", 4}, {"I", 8}, {"V", 5}, {"D", 5}}

// A claim is a line of the page's tables.
type claim struct {
	id       string // or what it is about, in lines that prove no claim of their own
	isClaim  bool
	tests    []string
	commands [][]string
	prints   []string
}

var spans = regexp.MustCompile("`([^`]+)`")

// claims reads the page.
func claims(t *testing.T) (all []claim) {
	t.Helper()
	page, err := os.ReadFile(claimsPage)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if line[0] != '|' || len(cells) != 5 || cells[2] == "test" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		c := claim{id: strings.Trim(cells[0], "*"), isClaim: strings.HasPrefix(cells[0], "**"), tests: quoted(cells[2]), prints: quoted(cells[4])}
		for _, command := range quoted(cells[3]) {
			c.commands = append(c.commands, strings.Fields(command))
		}
		if len(c.tests) == 0 || len(c.commands) == 0 || len(c.prints) == 0 {
			t.Errorf("%s: want a test, a command, and what it prints", c.id)
		}
		all = append(all, c)
	}
	return all
}

// quoted returns the texts between backticks.
func quoted(text string) (all []string) {
	for _, match := range spans.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

func TestEveryClaimHasALineOnThePage(t *testing.T) {
	var want, got []string
	for _, ids := range claimIDs {
		for i := range ids.n {
			want = append(want, fmt.Sprint(ids.group, i+1))
		}
	}
	for _, c := range claims(t) {
		if c.isClaim {
			got = append(got, c.id)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has %v, want %v", got, want)
	}
}

// A comment on a test or in it names the claims that the test proves, after the
// word CLAIM. All tests of the page exist, and of each line at least one names
// the line's claim.
func TestThePagesTestsProveItsClaims(t *testing.T) {
	proved := provedBy(t)
	for _, c := range claims(t) {
		var ids []string
		for _, name := range c.tests {
			of, ok := proved[name]
			if !ok {
				t.Errorf("%s: there is no test %s", c.id, name)
			}
			ids = append(ids, of...)
		}
		if c.isClaim && !slices.Contains(ids, c.id) {
			t.Errorf("%s: the tests %v are for %v", c.id, c.tests, ids)
		}
	}
}

var claimComment = regexp.MustCompile(`CLAIM((?: [A-Z][0-9]+)+)`)

// provedBy returns the claims that each test of this repository proves.
func provedBy(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			ids := all[f.Name.Name]
			for _, comment := range file.Comments {
				if comment.Pos() < from || comment.Pos() > f.End() {
					continue
				}
				for _, match := range claimComment.FindAllStringSubmatch(comment.Text(), -1) {
					ids = append(ids, strings.Fields(match[1])...)
				}
			}
			all[f.Name.Name] = ids
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each command of a line prints one of the line's texts, and each text is printed by one
// of them.
func TestThePagesCommandsPrintWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is concurrent")
	}
	for _, c := range claims(t) {
		found := make(map[string]bool)
		for _, words := range c.commands {
			if words[0] != "chorale" {
				t.Errorf("%s: %v is no command of ours", c.id, words)
				continue
			}
			cmd := exec.Command("chorale", words[1:]...)
			cmd.Dir = repository
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %s: %v: %s", c.id, strings.Join(words, " "), err, out)
			}
			any := false
			for _, want := range c.prints {
				if prints(string(out), want) {
					any, found[want] = true, true
				}
			}
			if !any {
				t.Errorf("%s: %s prints none of %q", c.id, strings.Join(words, " "), c.prints)
			}
		}
		for _, want := range c.prints {
			if !found[want] {
				t.Errorf("%s: nothing prints %q", c.id, want)
			}
		}
	}
}

// A continuation is where a long line goes on.
var continuation = regexp.MustCompile(`\n {2,}`)

// prints reports whether a line of the output, with those that it goes on in, contains the
// words, with any spaces between them.
func prints(out, words string) bool {
	exactly := regexp.MustCompile(`(?:^|[ >])` + regexp.QuoteMeta(words) + `(?:$|[ ,:<])`)
	for line := range strings.Lines(out + continuation.ReplaceAllString(out, " ")) {
		if exactly.MatchString(strings.Join(strings.Fields(line), " ")) {
			return true
		}
	}
	return false
}
