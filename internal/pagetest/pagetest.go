// Package pagetest tests the numbers of the pages of docs against the constants of the
// packages that the pages are about.
package pagetest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Page returns docs/transports.md.
func Page(t testing.TB) string { return page(t, "transports.md") }

func page(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if page, err := os.ReadFile(filepath.Join(dir, "docs", name)); err == nil {
			return string(page)
		}
	}
	t.Fatalf("docs/%s is in no directory above %s: %v", name, dir, err)
	return ""
}

// Section returns a section of a page.
func Section(t testing.TB, page, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// Rows returns the rows of the table of a section of a page of docs, each with its cells,
// without the heading.
func Rows(t testing.TB, name, heading string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(Section(t, page(t, name), heading)) {
		cells, found := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if found {
			rows = append(rows, strings.Split(strings.TrimSuffix(cells, " |"), " | "))
		}
	}
	if len(rows) == 0 {
		t.Fatalf("section %q has no table", heading)
	}
	return rows[1:]
}

var (
	// A quantity with the constant behind it, as in "64 KiB (`stagingLen`)", and one
	// with a unit.
	quoted   = regexp.MustCompile("([0-9]+) ?([^ (|]*) \\(`([A-Za-z]+)`\\)")
	quantity = regexp.MustCompile(`([0-9]+)[ -](bytes?|KiB|MiB|GiB|µs|ms|s|minutes)\b`)

	// units are those of the page. Lengths are in bytes, and times in nanoseconds.
	units = map[string]int64{
		"byte": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
		"µs": int64(time.Microsecond), "ms": int64(time.Millisecond), "s": int64(time.Second), "minutes": int64(time.Minute),
	}
)

func valueOf(number, unit string) int64 {
	n, _ := strconv.ParseInt(number, 10, 64) // digits
	if u, ok := units[unit]; ok {
		return n * u
	}
	return n
}

// CheckNumbers tests the numbers of a section of docs/transports.md against the
// constants of the package that it is about. The section quotes each of them at least
// once, and has no length and no time that is not the value of one, or among others.
func CheckNumbers(t *testing.T, heading string, constants map[string]int64, others ...string) {
	t.Helper()
	CheckNumbersOf(t, "transports.md", heading, constants, others...)
}

// CheckNumbersOf is CheckNumbers for any page of docs.
func CheckNumbersOf(t *testing.T, name, heading string, constants map[string]int64, others ...string) {
	t.Helper()
	section := Section(t, page(t, name), heading)
	seen := map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(section, -1) {
		want, ok := constants[m[3]]
		if got := valueOf(m[1], m[2]); !ok || got != want {
			t.Errorf("%q: the constant is %d, and known: %v", m[0], want, ok)
		}
		seen[m[3]] = true
	}
	values := map[int64]bool{}
	for name, value := range constants {
		if values[value] = true; !seen[name] {
			t.Errorf("section %q does not quote %s", heading, name)
		}
	}
	for _, m := range quantity.FindAllStringSubmatch(section, -1) {
		if !values[valueOf(m[1], m[2])] && !slices.Contains(others, m[0]) {
			t.Errorf("section %q says %q, which is the value of no constant", heading, m[0])
		}
	}
}
