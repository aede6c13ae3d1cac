package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test binary is the program, where this is set.
const isProgram = "OWNALGORITHM_IS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(isProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// Every verb knows the algorithm, and so do the processes that bench starts.
func TestEveryVerbHasTheOwnAlgorithm(t *testing.T) {
	t.Setenv(isProgram, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	picture := filepath.Join(t.TempDir(), "both-ways.svg")
	for call, want := range map[string]string{
		"list bcast":                                                                    "\nboth-ways\n",
		"show bcast -n 8 --algorithm both-ways":                                         "bcast both-ways: 8 ranks, root 0, 1 block, 4 steps, 7 messages\n",
		"check bcast -n 1..40 --algorithm both-ways":                                    "820 schedules checked, none is wrong\n",
		"sim bcast -n 1..9 --algorithm both-ways --format csv":                          "both-ways,,9,",
		"bench bcast -n 1,3 --transport shm --sizes 8 --time 1ms --algorithm both-ways": "\nbcast       both-ways  shm",
		"bench bcast -n 4 --transport tcp --sizes 8 --time 1ms --algorithm both-ways":   "\nbcast       both-ways  tcp",
		"draw bcast -n 8 --algorithm both-ways -o " + picture:                           "",
	} {
		out, err := exec.Command(self, strings.Fields(call)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: want %q in\n%s", call, err, want, out)
		}
	}
	if text, err := os.ReadFile(picture); err != nil || !strings.Contains(string(text), "both-ways") {
		t.Errorf("the picture: %v", err)
	}
}

// Help and errors have the program's own name.
func TestTheCommandHasTheNameOfItsProgram(t *testing.T) {
	t.Setenv(isProgram, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(self), ".exe")
	for call, want := range map[string]string{
		"list --help": "\n  " + name + " list allreduce\n",
		"lst":         name + ": ",
		"list brcast": name + " list: ",
		"--version":   "chorale ",
	} {
		out, _ := exec.Command(self, strings.Fields(call)...).CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: want %q in\n%s", call, want, out)
		}
	}
}
