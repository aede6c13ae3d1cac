package launch

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/transport"
)

var testSecret = proof.Secret{1, 2, 3}

// noop is an endpoint whose exchanges return at once.
type noop struct{ transport.ProcessEndpoint }

func (noop) Exchange(context.Context, transport.Step) error { return nil }

func TestAnAttachedEndpointAllocatesNothing(t *testing.T) {
	a := &attached{ProcessEndpoint: noop{}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _ = a.Exchange(ctx, transport.Step{}) }); n != 0 {
		t.Errorf("%v allocations per exchange", n)
	}
}

// A rank that never calls its endpoint ends with its launcher too.
func TestARankEndsWithItsLauncher(t *testing.T) {
	c, err := control.NewServer(control.Config{Size: 1, Secret: testSecret, Hooks: control.Hooks{
		Failed:  func(err error) { t.Error(err) },
		Dropped: func(int, bool) {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	env := JobEnv{Transport: "tcp", Rank: 0, Size: 1, Control: c.Address(), Secret: testSecret}
	cmd := exec.Command(os.Args[0], "idle")
	cmd.Env = append(os.Environ(), env.environ()...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "joined\n" {
		t.Errorf("it prints %q, %v; want joined", line, err)
	}
	c.Close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
	if want := "chorale: rank 0: the launcher is gone, so this rank ends\n"; stderr.String() != want {
		t.Errorf("it prints %q, want %q", stderr.String(), want)
	}
}

func TestAutoFallsBackToTCPAndShmDoesNot(t *testing.T) {
	for _, test := range []struct {
		env  JobEnv
		want string // the transport, or an error
	}{
		{JobEnv{Transport: "auto", Size: 100_000}, "tcp"},
		{JobEnv{Transport: "auto", Size: 1}, "tcp"},
		{JobEnv{Transport: "tcp", Size: 2}, "tcp"},
		{JobEnv{Transport: "shm", Size: 100_000}, "no shared memory: shm: 100000 ranks: want 1 to 1024: --transport auto or tcp does without"},
	} {
		j := &job{}
		env := test.env
		got := "tcp"
		if err := j.share(&env); err != nil {
			got = err.Error()
		} else if env.Transport != "tcp" || env.Mixed || env.Memory != 0 || j.memory != nil {
			got = fmt.Sprintf("%+v", env)
		}
		if got != test.want {
			t.Errorf("%+v: got %s, want %s", test.env, got, test.want)
		}
	}
}
