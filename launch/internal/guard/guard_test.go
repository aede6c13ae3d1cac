package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/leaktest"
)

// The test binary is also the guard, and a process that never ends by itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			Run(os.Stdin)
			return
		case "sleep":
			time.Sleep(time.Hour)
			return
		}
	}
	leaktest.VerifyTestMain(m)
}

func TestAGuardRemovesProcessesAndFiles(t *testing.T) {
	for name, args := range map[string][]string{
		"by a guard process":  {"guard"},
		"without one":         nil,
		"after it was killed": {"guard"},
	} {
		t.Run(name, func(t *testing.T) {
			left := startIdle(t)
			spared := startIdle(t)
			path := filepath.Join(t.TempDir(), Prefix+"test")
			g, err := Start(args, os.Environ())
			if err != nil {
				t.Fatal(err)
			}
			g.Started(left.Process.Pid)
			g.Started(spared.Process.Pid)
			g.Ended(spared.Process.Pid)
			g.Remove(path)
			if err := os.MkdirAll(filepath.Join(path, "deep"), 0o777); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "after") {
				g.cmd.Process.Kill()
			}
			g.Close()
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s is still there", path)
			}
			if left.Wait(); left.ProcessState.Success() {
				t.Error("the group has ended with success, want it killed")
			}
			if err := spared.Process.Kill(); err != nil {
				t.Errorf("a group that had ended before was killed: %v", err)
			}
			spared.Wait()
		})
	}
}

// acts returns the effects of a guard that are recorded instead.
func acts(done *[]string) effects {
	act := func(format string, args ...any) { *done = append(*done, fmt.Sprintf(format, args...)) }
	return effects{
		kill:   func(group int) { act("kill %d", group) },
		sweep:  func(variable string) int { act("sweep %s", variable); return 0 },
		remove: func(path string) error { act("remove %s", path); return nil },
	}
}

func TestAGuardActsOnNotesOfALauncherAlone(t *testing.T) {
	mark := newMark()
	var done []string
	c := cleanup{effects: acts(&done)}
	c.read(strings.NewReader(strings.Join([]string{
		`{"group":1}`, `{"group":-5}`, `{"group":0}`, `{"group":77}`, `{"group":78}`, `{"ended":78}`,
		`{"mark":"PATH=/bin"}`, `{"mark":"CHORALE_MARK="}`, `{"mark":"` + mark + `"}`,
		`{"path":"/"}`, `{"path":"/home"}`, `{"path":"chorale-x"}`, `{"path":"/tmp/chorale-x/.."}`, `{"path":"/tmp/chorale-x"}`,
		`{"path":"/tmp/chorale-y`, `nonsense`, strings.Repeat("x", 1<<20), `{"group":79}`,
	}, "\n")))
	c.run()
	if want := []string{"kill 77", "sweep " + mark, "remove /tmp/chorale-x"}; !slices.Equal(done, want) {
		t.Errorf("%q, want %q", done, want)
	}
}

// FuzzGuard writes to a guard what no launcher writes. The guard reads all of it before
// it acts, and acts on nothing but what a job can have.
func FuzzGuard(f *testing.F) {
	f.Add("{\"mark\":\"" + newMark() + "\"}\n{\"group\":77}\n{\"path\":\"/tmp/chorale-x\"}\n")
	f.Add("{\"group\":77}\n{\"ended\":77}\n{\"group\":1}\n{\"group\":-77}\n")
	f.Add("{\"mark\":\"PATH=/bin\",\"group\":5}\n{\"path\":\"/tmp/../etc/chorale-x\"}")
	f.Add(strings.Repeat("x", 70_000) + "\n{\"group\":5}")
	f.Fuzz(func(t *testing.T, notes string) {
		var done []string
		c := cleanup{effects: acts(&done)}
		r := strings.NewReader(notes)
		c.read(r)
		if r.Len() > 0 || len(done) > 0 {
			t.Fatalf("after %d bytes of %d it does %q", len(notes)-r.Len(), len(notes), done)
		}
		c.run()
		killed := 0
		for _, act := range done {
			what, of, _ := strings.Cut(act, " ")
			group, _ := strconv.Atoi(of)
			switch {
			case what == "kill" && group > 1:
				killed++
			case what == "sweep" && isMark(of):
			case what == "remove" && strings.HasPrefix(of, "/") && !strings.Contains(of, "/../") && strings.Contains(of, "/"+Prefix):
			default:
				t.Errorf("%q makes it %s", notes, act)
			}
		}
		if killed > strings.Count(notes, "\n")+1 {
			t.Errorf("%q makes it kill %d groups", notes, killed)
		}
	})
}

// startIdle starts a process in a group of its own that never ends by itself.
func startIdle(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "sleep")
	cmd.SysProcAttr = OwnGroup()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
