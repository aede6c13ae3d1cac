package launch

import (
	"github.com/google/go-cmp/cmp"
	"strings"
	"testing"
	"time"
)

func TestARankOfAnMPINeedsOneVariable(t *testing.T) {
	env, err := parseJobEnv(lookupIn(map[string]string{envTransport: "mpi", envLinger: "90s"}))
	if want := (JobEnv{Launched: true, Transport: "mpi", Linger: 90 * time.Second}); err != nil || !cmp.Equal(env, want) {
		t.Errorf("got %+v, %v, want %+v", env, err, want)
	}
}

func TestARankOfAnMPIIsNotToldItsRank(t *testing.T) {
	_, err := parseJobEnv(lookupIn(map[string]string{envTransport: "mpi", envRank: "3"}))
	if err == nil || !strings.HasPrefix(err.Error(), "CHORALE_RANK=3 and CHORALE_TRANSPORT=mpi: want only one") {
		t.Errorf("got %v", err)
	}
}

func TestTheRanksOfAnMPIAreStartedByItsLauncher(t *testing.T) {
	err := Run(t.Context(), Config{Size: 3, Program: "prog", Transport: "mpi"})
	if err == nil || !strings.HasSuffix(err.Error(), "want CHORALE_TRANSPORT=mpi mpiexec -n 3 prog") {
		t.Errorf("got %v", err)
	}
}
