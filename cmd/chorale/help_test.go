package main

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chorale-go/chorale/sched"
)

// A terminal has 80 columns.
func TestNoLineOfAHelpOrAListIsTooLongForATerminal(t *testing.T) {
	calls := [][]string{{"--help"}, {"list"}}
	for _, verb := range verbs(newRoot()) {
		calls = append(calls, []string{verb, "--help"})
	}
	for _, c := range sched.Collectives() {
		calls = append(calls, []string{"list", c.String()})
	}
	for _, args := range calls {
		out, err := exec.Command("chorale", args...).CombinedOutput()
		if err != nil || len(out) == 0 {
			t.Errorf("chorale %s: %v", strings.Join(args, " "), err)
		}
		for line := range strings.Lines(string(out)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth {
				t.Errorf("chorale %s: %d columns: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

func TestALongLastCellGoesOnBelowItself(t *testing.T) {
	var out strings.Builder
	if err := printTable(&out, [][]string{{"A", "B"}, {"key", strings.Repeat("word ", 20)}, {"é", "x"}}); err != nil {
		t.Fatal(err)
	}
	want := "A    B\nkey  " + strings.TrimSpace(strings.Repeat("word ", 15)) + "\n     " + strings.TrimSpace(strings.Repeat("word ", 5)) + "\né    x\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
