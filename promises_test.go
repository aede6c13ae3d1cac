package chorale_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEachPromiseOfTheGuideHasItsTest(t *testing.T) {
	page, err := os.ReadFile("docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, promises, found := strings.Cut(string(page), "## What a call promises")
	if !found {
		t.Fatal("the guide has no promises")
	}
	promises, _, _ = strings.Cut(promises, "\n## ")
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for line := range strings.Lines(promises) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise") {
			continue
		}
		names := regexp.MustCompile(`Test\w+`).FindAllString(line, -1)
		if len(names) == 0 {
			t.Errorf("no test holds this: %s", line)
		}
		for _, name := range names {
			if !strings.Contains(tests.String(), "func "+name+"(t *testing.T)") {
				t.Errorf("no %s, which is to hold this: %s", name, line)
			}
		}
	}
}
