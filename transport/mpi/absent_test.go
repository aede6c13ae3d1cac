//go:build !mpi

package mpi

import (
	"os/exec"
	"strings"
	"testing"
)

func TestWithoutTheTagNewSaysHowToBuild(t *testing.T) {
	if _, _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "go build -tags mpi,mpich") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutTheTagNothingOfCgoIsLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.CgoFiles}}{{.CFiles}}{{.HFiles}}", ".").CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "[][][]" {
		t.Errorf("got %s, %v", got, err)
	}
}
