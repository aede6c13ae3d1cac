package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/transport"
)

// The ways in which the first Regroup of a job of three ranks fails, by name: what rank 2 does
// while ranks 0 and 1 regroup with it, and how the error of the others ends.
var failedRegroups = map[string]struct {
	rank2 func(ep transport.Endpoint, env JobEnv) error
	want  string
	left  int // how many ranks are there afterwards
}{
	"is killed": {func(transport.Endpoint, JobEnv) error {
		time.Sleep(50 * time.Millisecond)
		end("killed")
		return nil
	}, "rank 2: the rank is lost: killed by signal 9 (killed)", 2},
	"is killed when it is to join": {func(ep transport.Endpoint, _ JobEnv) error {
		if _, err := ep.(*attached).launcher.Regroup(context.Background(), 1, []int{0, 1, 2}); err != nil {
			return err
		}
		end("killed")
		return nil
	}, "rank 2: the rank is lost: killed by signal 9 (killed) without joining the job", 2},
	"leaves": {func(ep transport.Endpoint, _ JobEnv) error {
		return ep.Close()
	}, "rank 2: the rank has left the job", 2},
	"ends without leaving": {func(ep transport.Endpoint, _ JobEnv) error {
		os.Exit(0)
		return nil
	}, "rank 2: the rank is lost: exited with status 0", 2},
	"has no time": {func(ep transport.Endpoint, env JobEnv) error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, errors.New("no time"))
		defer cancel()
		_, _, err := env.Regroup(ctx, 1, []int{0, 1, 2})
		if err == nil || !strings.HasSuffix(err.Error(), "no time") {
			return fmt.Errorf("its own error is %w", err)
		}
		if err := ep.Send(context.Background(), 0, gaveUpInTime, "byte", []byte{1}); err != nil {
			return err
		}
		return retry(env, 3)
	}, "rank 2: the rank gave up: no time", 3},
	"has other members": {func(ep transport.Endpoint, env JobEnv) error {
		if _, _, err := env.Regroup(context.Background(), 1, []int{1, 2}); err == nil || !strings.Contains(err.Error(), "want the same on all") {
			return fmt.Errorf("its own error is %w", err)
		}
		return retry(env, 3)
	}, "want the same on all", 3},
	"joins late": {func(ep transport.Endpoint, env JobEnv) error {
		// It is told of the group, and gives up before it has joined.
		client := ep.(*attached).launcher
		if _, err := client.Regroup(context.Background(), 1, []int{0, 1, 2}); err != nil {
			return err
		}
		client.LeaveGroup(1, errors.New("no memory"))
		return retry(env, 3)
	}, "rank 2: the rank is lost: it gave up joining: no memory without joining the job", 3},
}

// gaveUpInTime matches the message that rank 2 has had no time: rank 0 regroups then. Else both
// might regroup at the same time, on a busy machine.
var gaveUpInTime = transport.Match{Context: transport.ResilientContext(0), Tag: 3}

// regroupTwice CASE has the first Regroup fail, and the second one succeed.
func regroupTwice(args []string) error {
	test := failedRegroups[args[0]]
	ep, env, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	if env.Rank == 2 {
		return test.rank2(ep, env)
	}
	switch {
	case env.Rank == 0 && args[0] == "has no time":
		if _, err := ep.Recv(context.Background(), 2, gaveUpInTime, "byte", make([]byte, 1)); err != nil {
			return err
		}
	case env.Rank == 0:
		time.Sleep(150 * time.Millisecond)
	}
	_, _, err = env.Regroup(context.Background(), 1, []int{0, 1, 2})
	if err == nil || !strings.HasSuffix(err.Error(), test.want) {
		return fmt.Errorf("the error is %q, want %q", err, test.want)
	}
	var peer *transport.PeerError
	if errors.As(err, &peer) != strings.HasPrefix(test.want, "rank 2") || peer != nil && peer.Peer != 2 {
		return fmt.Errorf("the error %q names rank %v", err, peer)
	}
	return retry(env, test.left)
}

// retry regroups with those that are left.
func retry(env JobEnv, left int) error {
	ep, env, err := env.Regroup(context.Background(), 2, []int{0, 1, 2}[:left])
	if err != nil {
		return err
	}
	defer ep.Close()
	if _, err := agreeOn(ep, 0); err != nil {
		return err
	}
	fmt.Println("regrouped", ep.Rank(), ep.Size(), env.Group)
	return nil
}

func TestARegroupThatFailsFailsOnAllMembersAndMayBeRepeated(t *testing.T) {
	for what, test := range failedRegroups {
		t.Run("rank 2 "+what, func(t *testing.T) {
			r := new(result)
			cfg := continuing(config(t, 3, "regrouptwice", what), r)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := Run(ctx, cfg); err != nil || strings.Count(r.out.String(), "regrouped ") != test.left {
				t.Errorf("%v, want %d ranks to regroup\n%s%s", err, test.left, &r.out, &r.err)
			}
		})
	}
}

func TestAWrongRegroupIsAnErrorOfItsCaller(t *testing.T) {
	r := run(t, 2, "wrongregroup")
	if r.end != nil {
		t.Errorf("%v\n%s", r.end, &r.err)
	}
}

func wrongRegroup([]string) error {
	ep, env, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	for i, members := range [][]int{nil, {}, {1 - env.Rank}, {env.Rank, env.Rank}, {1, 0}, {-1, 0, 1}, {0, 1, 2}} {
		if _, _, err := env.Regroup(context.Background(), uint64(i), members); err == nil || !strings.Contains(err.Error(), "want") {
			return fmt.Errorf("members %v: %w", members, err)
		}
	}
	var none context.Context
	if _, _, err := env.Regroup(none, 8, []int{env.Rank}); !errors.Is(err, errNoContext) {
		return err
	}
	own, _, err := env.Regroup(context.Background(), 9, []int{env.Rank})
	if err != nil {
		return err
	}
	if _, _, err := env.Regroup(context.Background(), 9, []int{env.Rank}); err == nil || !strings.Contains(err.Error(), "the id is that of another call") {
		return fmt.Errorf("the same id again: %w", err)
	}
	return own.Close()
}

// newcomers CASE DIR is a job of two ranks, of which rank 1 is lost.
func newcomers(args []string) error {
	env, err := Environment()
	if err != nil {
		return err
	}
	if env.Respawned {
		switch first := isFirst(args[1]); {
		case args[0] == "sleeps":
			fmt.Println("sleeps")
			touch(args[1], "anew")
			time.Sleep(time.Hour)
		case args[0] == "dies" && first:
			end("killed")
		case args[0] == "dies in the group" && first:
			cfg, err := env.dialConfig()
			if err == nil {
				_, _, err = control.Wait(context.Background(), cfg)
			}
			if err != nil {
				return err
			}
			end("killed")
		}
		if args[0] == "waits" {
			fmt.Println("waits")
			touch(args[1], "anew")
		}
	}
	ep, env, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	if env.Respawned {
		_, err := agreeOn(ep, 0)
		fmt.Println("regrouped", ep.Rank(), ep.Size())
		return err
	}
	if _, err := agreeOn(ep, 0); err != nil {
		return err
	}
	awaitAgreed(ep, jobRanks(env), []int{1})
	if env.Rank == 1 {
		end("killed")
	}
	if err := awaitLoss(ep, 1); err != nil {
		return err
	}
	if args[0] == "waits" || args[0] == "sleeps" {
		awaitFile(args[1], "anew")
		time.Sleep(300 * time.Millisecond) // for a newcomer to wait in its Join
		return nil
	}
	for id := range uint64(5) {
		anew, _, err := env.Regroup(context.Background(), id, []int{0})
		var peer *transport.PeerError
		if errors.As(err, &peer) && peer.Peer == 1 && errors.Is(err, transport.ErrLost) {
			fmt.Println("fails")
			continue
		}
		if err != nil {
			return err
		}
		defer anew.Close()
		_, err = agreeOn(anew, 0)
		fmt.Println("regrouped", anew.Rank(), anew.Size())
		return err
	}
	return errors.New("too many failures")
}

// touch makes a file, for which awaitFile waits in another process.
func touch(dir, name string) {
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		panic(err)
	}
}

func awaitFile(dir, name string) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return
		}
	}
	panic("after 30 s, there is no file " + name)
}

// isFirst reports whether no other process has called it with that directory.
func isFirst(dir string) bool {
	return os.Mkdir(dir+"/first", 0o700) == nil
}

func TestANewcomerThatDiesMakesRoomForTheNext(t *testing.T) {
	for what, fails := range map[string]int{"dies": 0, "dies in the group": 1} {
		r := new(result)
		cfg := continuing(config(t, 2, "newcomers", what, t.TempDir()), r)
		cfg.Respawn = 2
		err := Run(t.Context(), cfg)
		want := append(slices.Repeat([]string{"fails"}, fails), "regrouped 0 2", "regrouped 1 2")
		if got := sortedLines(r.out.String(), ""); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %q, want %q\n%s", what, err, got, want, &r.err)
		}
	}
}

func TestTheLogHasWhoIsStartedAnewAndWhoTakesItIn(t *testing.T) {
	r := new(result)
	cfg := continuing(config(t, 2, "newcomers", "", t.TempDir()), r)
	cfg.Respawn, cfg.Env = 1, append(os.Environ(), "CHORALE_LOG=info")
	err := Run(t.Context(), cfg)
	for want, times := range map[string]int{
		"msg=joined rank=0 size=2 transport=shm respawned=false": 1,
		"msg=joined rank=1 size=2 transport=shm respawned=false": 1,
		"msg=joined rank=1 size=2 transport=shm respawned=true":  1,
		"msg=regrouped rank=0 size=2 newcomers=1":                1,
		"msg=regrouped": 1,
	} {
		if err != nil || strings.Count(r.err.String(), want) != times {
			t.Errorf("error %v: want %q %d times in\n%s", err, want, times, &r.err)
		}
	}
}

func TestANewcomerThatNobodyNeedsEndsQuietly(t *testing.T) {
	for _, what := range []string{"waits", "sleeps"} {
		r := new(result)
		cfg := continuing(config(t, 2, "newcomers", what, t.TempDir()), r)
		cfg.Respawn, cfg.Grace = 1, 100*time.Millisecond
		var begun time.Time // of the newcomer: until then it takes as long as processes take to start
		cfg.Stdout = writerFunc(func(p []byte) (int, error) {
			begun = time.Now()
			return r.out.Write(p)
		})
		err := Run(t.Context(), cfg)
		if said := r.err.String(); err != nil || strings.Count(said, "\n") != 1 || !strings.Contains(said, "rank 1 was lost: killed by signal 9 (killed); it is started anew, and the others go on\n") || !strings.Contains(r.out.String(), what) {
			t.Errorf("%s: %v\n%s%s", what, err, &r.out, &r.err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: the job ends %v after the newcomer has begun", what, took)
		}
	}
}

// pending joins. Rank 2 is lost, and another one waits in its place. Rank 0 regroups, and
// waits for rank 1, which does not.
func pending([]string) error {
	env, err := Environment()
	if err != nil {
		return err
	}
	if env.Respawned {
		fmt.Println("waits")
	}
	ep, env, err := Join(context.Background())
	if err != nil {
		return err
	}
	if _, err := agreeOn(ep, 0); err != nil {
		return err
	}
	awaitAgreed(ep, jobRanks(env), []int{2})
	if env.Rank == 2 {
		end("killed")
	}
	if err := awaitLoss(ep, 2); err != nil {
		return err
	}
	fmt.Println("waits")
	if env.Rank == 0 {
		_, _, err := env.Regroup(context.Background(), 1, []int{0, 1})
		return err
	}
	select {}
}

// launchPending is a launcher of such ranks.
func launchPending([]string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	Notify(signals)
	return Run(context.Background(), Config{
		Size: 3, Program: self, Args: []string{"pending"}, Respawn: 1, Unlabeled: true, Signals: signals,
		Stdout: os.Stdout, Stderr: os.Stderr, Guard: []string{"guard"}, Grace: 500 * time.Millisecond,
	})
}

func TestNothingRemainsOfARegroupWhoseLauncherEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are found in /proc")
	}
	for _, sig := range []os.Signal{os.Kill, os.Interrupt} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		launcher := exec.Command(self, "launchpending")
		launcher.Env = append(os.Environ(), "TMPDIR="+dir)
		var stdout lockedBuilder
		launcher.Stdout, launcher.Stderr = &stdout, &stdout
		if err := launcher.Start(); err != nil {
			t.Fatal(err)
		}
		defer launcher.Process.Kill()
		await(t, "the ranks wait", func() bool { return strings.Count(stdout.String(), "waits\n") == 3 })
		launcher.Process.Signal(sig)
		if launcher.Wait() == nil {
			t.Errorf("%v: the launcher ends with success", sig)
		}
		await(t, "nothing is left of the job", func() bool {
			left, err := os.ReadDir(dir)
			return err == nil && len(left) == 0 && len(processesWith(t, "TMPDIR="+dir)) == 0
		})
	}
}
