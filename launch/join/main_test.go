package join

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/leaktest"
)

// The test binary is also the program of the ranks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		if err := rank(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "rank:", err)
			os.Exit(3)
		}
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector takes a second to end
	leaktest.VerifyTestMain(m)
}

// sharedValue is what rank 0 shares in the tests under real launchers: it takes several
// parts, and has what key stores dislike.
var sharedValue = strings.Repeat("a b=c;d\\e\n\x00é", 200)

// digest stands for a value in a rank's output.
func digest(value string) string {
	return fmt.Sprintf("%d %.8x", len(value), sha256.Sum256([]byte(value)))
}

// rank [ACT RANK]: the rank finds its place, shares two values and says what it knows.
// Then the ranks leave, unless one rank is to do otherwise:
//
//	killed      it is killed
//	quits       it ends with status 0, and does not leave
//	abort       it aborts the job with status 5
//	status      it leaves and ends with status 7, while others go on
//
// The others then stay until the launcher ends them; for status, until all have left.
func rank(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := Find(os.LookupEnv)
	if err != nil {
		return err
	}
	session, err := p.Connect(ctx)
	if err != nil {
		return err
	}
	if session == nil {
		fmt.Printf("rank %d of %d: %s: job %q, rendezvous %v\n", p.Rank, p.Size, p.Launcher, p.Job, p.Rendezvous)
		return nil
	}
	for _, value := range []string{sharedValue, ""} {
		if p.Rank > 0 {
			value = ""
		}
		if value, err = session.Share(ctx, value); err != nil {
			return err
		}
		fmt.Printf("rank %d of %d: %s: job %q, value %s\n", p.Rank, p.Size, p.Launcher, p.Job, digest(value))
	}
	if len(args) == 2 {
		if args[1] == strconv.Itoa(p.Rank) {
			return act(ctx, session, args[0])
		}
		if args[0] != "status" {
			<-session.Gone()
			time.Sleep(time.Minute) // the launcher may have closed the connection before it kills
			return fmt.Errorf("rank %d outlives its job", p.Rank)
		}
	}
	return session.Finalize(ctx)
}

func act(ctx context.Context, session *Session, how string) error {
	switch how {
	case "killed":
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	case "quits":
		return nil
	case "abort":
		if err := session.Abort(5, "the disk is full"); err != nil {
			return err
		}
		os.Exit(5)
	case "status":
		if err := session.Finalize(ctx); err != nil {
			return err
		}
		os.Exit(7)
	}
	return fmt.Errorf("unknown act %q", how)
}
