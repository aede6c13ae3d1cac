package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestBatchScriptsAreReadByTheShellAndBySlurm(t *testing.T) {
	names, err := filepath.Glob("slurm/*.sbatch")
	if err != nil || len(names) != 2 {
		t.Fatalf("%q: %v", names, err)
	}
	for _, name := range names {
		if out, err := exec.Command("sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		checkOptions(t, name)
	}
}

// checkOptions checks that Slurm sees the options of a script, which come before its first
// command, and that srun starts the ranks.
func checkOptions(t *testing.T, name string) {
	t.Helper()
	text := read(t, name)
	var options []string
	begun := false
	for _, line := range strings.Split(text, "\n") {
		option, found := strings.CutPrefix(line, "#SBATCH ")
		switch {
		case found && begun:
			t.Errorf("%s: Slurm does not see %q, which comes after a command", name, line)
		case found:
			options = append(options, option)
		case line != "" && !strings.HasPrefix(line, "#"):
			begun = true
		}
	}
	for _, want := range []string{"--nodes=4", "--ntasks-per-node=2"} {
		if !strings.Contains(strings.Join(options, " "), want) {
			t.Errorf("%s has no %s", name, want)
		}
	}
	step := regexp.MustCompile(`(?m)^exec srun --mpi=(\S+)( --kill-on-bad-exit=1)? --label \./globalsum$`).FindStringSubmatch(text)
	token := strings.Contains(text, "\nexport CHORALE_TOKEN\n")
	if step == nil || (step[1] == "none") != token || token != (step[2] != "") {
		t.Errorf("%s: want srun to start the ranks; without PMI, with a token and an end when a rank cannot join: %q, %v", name, step, token)
	}
}

func TestTheTokenOfABatchScriptIsLongAndNew(t *testing.T) {
	line := regexp.MustCompile(`(?m)^CHORALE_TOKEN=.*$`).FindString(read(t, "slurm/token.sbatch"))
	seen := map[string]bool{}
	for range 2 {
		out, err := exec.Command("sh", "-c", line+`; printf %s "$CHORALE_TOKEN"`).Output()
		if token := string(out); err != nil || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(token) || seen[token] {
			t.Errorf("%s: a token of %d bytes, which is new: %v, %v", line, len(token), !seen[token], err)
		}
		seen[string(out)] = true
	}
}
