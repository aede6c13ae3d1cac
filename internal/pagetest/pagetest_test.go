package pagetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests of the transports check the sections about them. What the first section
// says, those say too, except for the lengths of its examples.
func TestTheSummaryOfThePageHasTheNumbersOfItsSections(t *testing.T) {
	page := Page(t)
	values := map[int64]bool{}
	for _, heading := range []string{"Shared memory", "TCP", "Between goroutines"} {
		for _, m := range quoted.FindAllStringSubmatch(Section(t, page, heading), -1) {
			values[valueOf(m[1], m[2])] = true
		}
	}
	for _, m := range quantity.FindAllStringSubmatch(Section(t, page, "In brief"), -1) {
		if !values[valueOf(m[1], m[2])] && !slices.Contains([]string{"100 bytes", "10 KiB", "10 MiB"}, m[0]) {
			t.Errorf("%q is the value of no constant", m[0])
		}
	}
	if m := quantity.FindString(Section(t, page, "Progress")); m != "" {
		t.Errorf("section Progress says %q, which no test checks", m)
	}
}

func TestThePageOfSecurityNamesTheFuzzTestOfEachPackage(t *testing.T) {
	for _, row := range Rows(t, "security.md", "What reads from a connection, and its fuzz test") {
		dir := strings.Trim(row[1], "`")
		if dir == "crypto/tls" {
			dir = "internal/proof" // which has the test
		}
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
		for name := range strings.SplitSeq(row[2], ", ") {
			if name = strings.Trim(name, "`"); !strings.Contains(code.String(), "\nfunc "+name+"(f *testing.F)") {
				t.Errorf("package %s has no %s", dir, name)
			}
		}
	}
}
