package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof/prooftest"
	"github.com/chorale-go/chorale/internal/testenv"
)

func TestRanksOfAJobFindEachOther(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7, 16} {
		r := run(t, size, "ring", "5")
		if r.end != nil {
			t.Errorf("%d ranks: %v\n%s", size, r.end, &r.err)
		}
		if got := strings.Count(r.out.String(), "token 5\n"); got != size {
			t.Errorf("%d ranks: %d have the token, want all\n%s", size, got, &r.out)
		}
	}
}

func TestTheRootCauseIsNamedAndNotTheRanksThatFailedBecauseOfIt(t *testing.T) {
	for _, test := range []struct {
		how, want string
		status    int
	}{
		{"killed", "rank 3 was killed by signal 9 (killed)", 137},
		{"7", "rank 3 exited with status 7", 7},
	} {
		for range 5 {
			r := run(t, 5, "ring", "100", "3", test.how)
			if r.end == nil || r.end.Error() != test.want || Status(r.end) != test.status {
				t.Errorf("%v, status %d; want %s, status %d\n%s", r.end, Status(r.end), test.want, test.status, &r.err)
			}
		}
	}
}

func TestRanksThatWaitForARankLearnWhyItIsNotThere(t *testing.T) {
	for _, test := range []struct{ program, want string }{
		{"absent", "rank 1: the rank is lost: exited with status 0 without joining the job"},
		{"early", "rank 1: the rank has left the job"},
	} {
		r := run(t, 3, test.program)
		if !strings.Contains(r.err.String(), test.want) {
			t.Errorf("%s: the ranks say\n%swant %s", test.program, &r.err, test.want)
		}
		var end *EndError
		if !errors.As(r.end, &end) || end.Rank == 1 {
			t.Errorf("%s: %v, want one of the ranks that waited", test.program, r.end)
		}
	}
}

func TestAMessageArrivesAfterTheEndOfItsSender(t *testing.T) {
	cfg := config(t, 2, "late")
	stdin, rank1Ended := io.Pipe()
	cfg.Stdin, cfg.Verbose = stdin, true
	var out, stderr lockedBuilder
	cfg.Stdout = &out
	cfg.Stderr = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "rank 1 exited") {
			rank1Ended.Close()
		}
		return stderr.Write(p)
	})
	if err := Run(t.Context(), cfg); err != nil || out.String() != "[0] a message\n" {
		t.Errorf("%v\n%s%s", err, &out, &stderr)
	}
}

// shell is the configuration of a job whose two ranks are shells.
func shell(t *testing.T, script string) Config {
	if _, err := exec.LookPath("sh"); err != nil {
		testenv.Skip(t, "%v", err)
	}
	return Config{Size: 2, Program: "sh", Args: []string{"-c", script}, Guard: []string{"guard"}}
}

func TestTheEndOfTheContextEndsTheJob(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cfg := shell(t, "echo ready; sleep 1000")
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		cancel(why)
		return len(p), nil
	})
	if err := Run(ctx, cfg); !errors.Is(err, why) || Status(err) != 1 {
		t.Errorf("%v, status %d; want %v, status 1", err, Status(err), why)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestTheSecondInterruptDoesNotWaitForABlockedOutput(t *testing.T) {
	signals := make(chan os.Signal) // unbuffered: a send returns when the launcher has the signal
	blocked := make(chan struct{})
	defer close(blocked)
	cfg := shell(t, "trap '' INT; echo ready; while :; do sleep 1; done")
	cfg.Size, cfg.Signals, cfg.Grace = 1, signals, time.Hour
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		interruptAgain(signals, blocked)
		return len(p), nil
	})
	err := Run(t.Context(), cfg)
	if err == nil || Status(err) != 130 {
		t.Errorf("%v, status %d; want status 130", err, Status(err))
	}
}

// interruptAgain interrupts a launcher again and again, and returns when the test is over. A
// signal within repeatTime counts as the one before; those after the second change nothing.
func interruptAgain(signals chan<- os.Signal, over <-chan struct{}) {
	for {
		select {
		case signals <- syscall.SIGINT:
		case <-over:
			return
		}
		select {
		case <-time.After(2 * repeatTime):
		case <-over:
			return
		}
	}
}

func TestAnInterruptSaysAtOnceWhichRanksAreWaitedFor(t *testing.T) {
	const want = "chorale: ended by signal 2 (interrupt): ranks 0, 2 have not ended; another Ctrl-C kills them at once, as the launcher does after 1h0m0s\n"
	// On a busy machine rank 1 may take longer to end, and then it is waited for.
	late := strings.Replace(want, "ranks 0, 2", "ranks 0–2", 1)
	said, err := late, error(nil)
	for runs := 0; said == late && runs < 5; runs++ {
		said, err = interrupted(t)
	}
	if Status(err) != 130 || said != want {
		t.Errorf("%v\ngot  %q\nwant %q", err, said, want)
	}
}

// interrupted runs three ranks, of which rank 1 ends at an interrupt, interrupts them once
// all have begun, and again when the launcher has said what it waits for. It returns that.
func interrupted(t *testing.T) (said string, err error) {
	signals := make(chan os.Signal, 1)
	cfg := shell(t, "test $CHORALE_RANK = 1 || trap '' INT; echo ready; while :; do sleep 1; done")
	cfg.Size, cfg.Signals, cfg.Grace = 3, signals, time.Hour
	var mu sync.Mutex
	ready := 0
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if ready += strings.Count(string(p), "ready"); ready == 3 {
			signals <- syscall.SIGINT
		}
		return len(p), nil
	})
	var text lockedBuilder
	cfg.Stderr = writerFunc(func(p []byte) (int, error) {
		n, err := text.Write(p)
		if strings.Contains(text.String(), "another Ctrl-C") {
			select {
			case signals <- syscall.SIGINT:
			default:
			}
		}
		return n, err
	})
	err = Run(t.Context(), cfg)
	return text.String(), err
}

func TestTwoInterruptsAtOnceCountAsOne(t *testing.T) {
	var said string
	var err error
	// The launcher may be late to have the second one, and then that kills the rank.
	for runs := 0; runs == 0 || said == "" && runs < 5; runs++ {
		said, err = interruptedAtOnce(t)
	}
	if Status(err) != 130 || !strings.Contains(said, "in good order") {
		t.Errorf("%v\n%s", err, said)
	}
}

// interruptedAtOnce interrupts a rank twice at once, and returns what it says then.
func interruptedAtOnce(t *testing.T) (said string, err error) {
	signals := make(chan os.Signal, 2)
	cfg := shell(t, "trap 'kill $!; read line; echo in good order; exit 0' INT; sleep 1000 & echo ready; wait")
	stdin, handled := io.Pipe()
	cfg.Size, cfg.Signals, cfg.Stdin = 1, signals, stdin
	var out strings.Builder
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "ready") {
			for range 2 {
				signals <- syscall.SIGINT
			}
			for range cap(signals) + 1 { // when the last one is in the channel, the launcher has handled both interrupts
				signals <- syscall.SIGPIPE
			}
			handled.Close()
			return len(p), nil
		}
		return out.Write(p)
	})
	err = Run(t.Context(), cfg)
	return out.String(), err
}

func TestASignalThatIsForwardedDoesNotKeepRanksFromStarting(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cfg := config(t, 3, "ring", "5")
	var out lockedBuilder
	cfg.Stdout, cfg.Signals = &out, signals
	signals <- syscall.SIGPIPE
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := Run(ctx, cfg); err != nil || strings.Count(out.String(), "token 5\n") != 3 {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestAWrongConfigIsAUsageError(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "0 ranks: want at least 1"},
		{Config{Size: -1, Program: "true"}, "-1 ranks: want at least 1"},
		{Config{Size: 2}, "no program to run: want an executable or the directory of a Go package"},
		{Config{Size: 2, Program: "true", Transport: "pigeon"}, `no transport "pigeon": want one of auto, inproc, shm, tcp`},
		{Config{Size: 2, Program: "true", Grace: -1}, "a grace of -1ns: want 0 or more"},
		{Config{Size: 2, Program: "/nowhere/to/be/found"}, "no program /nowhere/to/be/found: want an executable or the directory of a Go package"},
	} {
		err := Run(t.Context(), test.cfg)
		if err == nil || err.Error() != test.want || Status(err) != 2 {
			t.Errorf("%+v: %v, status %d; want %s, status 2", test.cfg, err, Status(err), test.want)
		}
	}
}

func TestATransportThatIsNotKnownSharesNoMemory(t *testing.T) {
	var j job
	if err := j.share(&JobEnv{Transport: "pigeon", Size: 2}); err == nil || j.memory != nil {
		t.Errorf("%v, memory %v; want an error", err, j.memory)
	}
}

func TestAProgramThatCannotBeStartedIsAnError(t *testing.T) {
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("#!/nowhere/to/be/found\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Config{Size: 3, Program: script})
	if err == nil || !strings.HasPrefix(err.Error(), "starting rank 0 of 3: ") || Status(err) != 1 {
		t.Errorf("%v, status %d; want status 1", err, Status(err))
	}
}

func TestManyJobsAtOnceDoNotInterfere(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if r := run(t, 3, "ring", "20"); r.end != nil || strings.Count(r.out.String(), "token 20\n") != 3 {
				t.Errorf("%v\n%s%s", r.end, &r.out, &r.err)
			}
		})
	}
}

func TestARankThatGaveUpIsNamedWithItsReasonBeforeFirstContact(t *testing.T) {
	for _, transport := range []string{"tcp", "auto"} {
		cfg := config(t, 2, "gaveup", t.TempDir())
		r := new(result)
		cfg.Transport, cfg.Stdout, cfg.Stderr = transport, &r.out, &r.err
		if err := Run(t.Context(), cfg); err == nil {
			t.Errorf("%s: the job ended well", transport)
		}
		for _, line := range []string{"[0] rank 1: ", "[1] "} {
			if i := strings.Index(r.err.String(), line); i < 0 || !strings.Contains(strings.SplitN(r.err.String()[i:], "\n", 2)[0], "the disk is full") {
				t.Errorf("%s: no line of %q with the reason: %s", transport, line, r.err.String())
			}
		}
	}
}

// The strangers are there before any rank.
func TestStrangersKeepNoRankOutOfItsJob(t *testing.T) {
	for _, transport := range []string{"auto", "tcp"} {
		cfg := config(t, 4, "ring", "20")
		cfg.Transport, cfg.Verbose = transport, true
		var out, stderr lockedBuilder
		cfg.Stdout = &out
		cfg.Stderr = writerFunc(func(p []byte) (int, error) {
			if _, addr, ok := strings.Cut(strings.TrimSpace(string(p)), "control: "); ok {
				prooftest.Attack(t, addr)
			}
			return stderr.Write(p)
		})
		if err := Run(t.Context(), cfg); err != nil || strings.Count(out.String(), "token 20\n") != 4 {
			t.Errorf("%s: %v\n%s%s", transport, err, &out, &stderr)
		}
	}
}
