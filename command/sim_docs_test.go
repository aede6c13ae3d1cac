package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestThePageOnTheSimulatorShowsTheOutputOfItsCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is concurrent")
	}
	showsItsOutput(t, "../docs/simulator.md")
}

// showsItsOutput runs the commands of a page. In its console blocks, a command stands after a
// $, with its output below. A block whose kind is followed by a name is a file of that name.
func showsItsOutput(t *testing.T, name string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the page's commands are for a POSIX shell")
	}
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var fresh strings.Builder
	for i, part := range strings.Split(string(page), "```") {
		if i > 0 {
			fresh.WriteString("```")
		}
		kind, body, _ := strings.Cut(part, "\n")
		switch _, file, named := strings.Cut(kind, " "); {
		case i%2 == 0:
		case kind == "console":
			part = kind + "\n" + transcript(t, dir, body)
		case named:
			if err := os.WriteFile(filepath.Join(dir, file), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fresh.WriteString(part)
	}
	switch {
	case fresh.String() == string(page):
	case *update:
		if err := os.WriteFile(name, []byte(fresh.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: go test ./command -update rewrites it", name)
	}
}

func TestThePageOnExplainShowsTheOutputOfItsCommands(t *testing.T) {
	showsItsOutput(t, "../docs/explain.md")
}

// transcript runs the commands of a block and returns it with their output.
func transcript(t *testing.T, dir, block string) string {
	var fresh strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s%v: %s", line, err, out)
		}
		fresh.WriteString(line)
		for printed := range strings.Lines(string(out)) {
			fresh.WriteString(strings.TrimRight(printed, " \n") + "\n")
		}
	}
	return fresh.String()
}
