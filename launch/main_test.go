package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/leaktest"
	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/transport"
)

// The test binary is also the guard and the program of the ranks.
func TestMain(m *testing.M) {
	if os.Getenv(machine.Variable) == "" {
		os.Setenv(machine.Variable, machine.Off) // whatever this machine's profile says
	}
	if len(os.Args) > 1 {
		if os.Args[1] == "guard" {
			Guard(os.Stdin)
			return
		}
		if os.Args[1] == "agent" {
			if err := Agent(os.Stdin, os.Stdout, []string{"guard"}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
		if program := programs[os.Args[1]]; program != nil {
			if err := program(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector takes a second to end
	leaktest.VerifyTestMain(m)
}

var programs = map[string]func(args []string) error{
	"ring":     ring,
	"absent":   absent,
	"early":    early,
	"late":     late,
	"idle":     idle,
	"await":    awaitOther,
	"gaveup":   gaveUp,
	"compute":  compute,
	"swap":     swap,
	"turns":    takeTurns,
	"launch":   launchShells,
	"search":   search,
	"closed":   closed,
	"leave0":   leaveFirst,
	"describe": report,
	"chosen":   chosen,
	"ssh":      fakeSSH,
	"remote":   launchRemote,
	"regroup":  regroupRanks,
	"survive":  survive,
	"outlive":  outlive,

	"regrouptwice": regroupTwice,
	"wrongregroup": wrongRegroup,

	"regrouptogether": regroupTogether,
	"newcomers":       newcomers,

	"pending":       pending,
	"launchpending": launchPending,
}

// ring ROUNDS [RANK END] sends a token around the ring ROUNDS times. In the middle,
// the rank ends: killed, or with a status.
func ring(args []string) error {
	rounds, _ := strconv.Atoi(args[0])
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	token := []byte{0}
	for round := range rounds {
		if len(args) > 1 && args[1] == strconv.Itoa(ep.Rank()) && round == rounds/2 {
			end(args[2])
		}
		if token, err = pass(ep, uint32(round), token); err != nil {
			return err
		}
		if rounds > longRing && round == 10 {
			fmt.Println("joined")
		}
	}
	fmt.Println("token", token[0])
	return nil
}

// A ring of more rounds than longRing says when it turns.
const longRing = 100_000

// pass sends the token to the next rank, receives the previous rank's and adds one
// to it.
func pass(ep transport.Endpoint, round uint32, token []byte) ([]byte, error) {
	if ep.Size() == 1 {
		return []byte{token[0] + 1}, nil
	}
	next, previous := (ep.Rank()+1)%ep.Size(), (ep.Rank()+ep.Size()-1)%ep.Size()
	got := []byte{0}
	err := ep.Exchange(context.Background(), transport.Step{
		Signature: transport.Signature{Sequence: round, Call: "pass"},
		Sends:     []transport.Send{{To: []int{next}, Data: token}},
		Recvs:     []transport.Recv{{From: previous, Into: got}},
	})
	got[0]++
	return got, err
}

func end(how string) {
	if how == "killed" {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	status, _ := strconv.Atoi(how)
	os.Exit(status)
}

// receive receives one message.
func receive(ep transport.Endpoint, from int, into []byte) error {
	return ep.Exchange(context.Background(), transport.Step{
		Signature: transport.Signature{Call: "message"},
		Recvs:     []transport.Recv{{From: from, Into: into}},
	})
}

// absent waits for rank 1, which never joins.
func absent([]string) error {
	if os.Getenv(envRank) == "1" {
		return nil
	}
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	return receive(ep, 1, make([]byte, 1))
}

// early waits for rank 1, which leaves at once.
func early([]string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	if ep.Rank() == 1 {
		return nil
	}
	return receive(ep, 1, make([]byte, 1))
}

// late makes rank 0 receive what rank 1 sent before it ended. Rank 0 waits for the
// end of its standard input, which tells it that rank 1 has ended.
func late([]string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	data := []byte("a message")
	if ep.Rank() == 1 {
		return ep.Exchange(context.Background(), transport.Step{
			Signature: transport.Signature{Call: "message"},
			Sends:     []transport.Send{{To: []int{0}, Data: data}},
		})
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	got := make([]byte, len(data))
	err = receive(ep, 1, got)
	fmt.Printf("%s\n", got)
	return err
}

// closed joins when its standard input ends.
func closed([]string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	return ep.Close()
}

// leaveFirst makes rank 0 leave at once; the others exchange a message when the standard
// input of rank 1 ends.
func leaveFirst([]string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	step := transport.Step{Signature: transport.Signature{Call: "message"}}
	switch ep.Rank() {
	case 0:
		fmt.Println("leaves")
		return ep.Close()
	case 1:
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		step.Sends = []transport.Send{{To: []int{2}, Data: []byte{1}}}
	case 2:
		step.Recvs = []transport.Recv{{From: 1, Into: make([]byte, 1)}}
	}
	return ep.Exchange(context.Background(), step)
}

// report prints what the rank has found out about its job.
func report([]string) error {
	r, err := Describe(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// idle joins, says so, and never ends by itself.
func idle([]string) error {
	if _, _, err := Join(context.Background()); err != nil {
		return err
	}
	fmt.Println("joined")
	select {}
}

// awaitOther joins, says so, and waits for a message that never comes, of a rank in the other
// half of the job.
func awaitOther([]string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	fmt.Println("joined")
	return receive(ep, (ep.Rank()+ep.Size()/2)%ep.Size(), make([]byte, 1))
}

// gaveUp DIR makes rank 1 give up and leave before any rank has a connection to it, and rank 0
// need it. Rank 1 ends when rank 0 has heard why.
func gaveUp(args []string) error {
	signal.Ignore(syscall.SIGTERM) // the other rank ends first, and this one may be late
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	if ep.Rank() == 0 {
		awaitFile(args[0], "left")
		err := receive(ep, 1, make([]byte, 1))
		touch(args[0], "heard")
		return err
	}
	full := errors.New("the disk is full")
	ep.Abort(full)
	ep.Close()
	touch(args[0], "left")
	awaitFile(args[0], "heard")
	return full
}

// compute RANK END joins, and says so. When standard input ends, one rank ends: killed, with
// a status, or because it has given up. The others make no call of the library any more.
func compute(args []string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	fmt.Println("joined")
	if args[0] != strconv.Itoa(ep.Rank()) {
		select {}
	}
	io.Copy(io.Discard, os.Stdin)
	if args[1] != "error" {
		end(args[1])
	}
	full := errors.New("the disk is full")
	ep.Abort(full)
	return full
}

// swap makes the ranks call the collectives of two communicators in different orders,
// and gives up at the end of standard input, which rank 0 has.
func swap([]string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if ep.Rank() == 0 {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	peer := 1 - ep.Rank()
	return ep.Exchange(ctx, transport.Step{
		Signature: transport.Signature{Context: uint32(1+ep.Rank()) << transport.ContextBits, Call: "swapped"},
		Recvs:     []transport.Recv{{From: peer, Into: make([]byte, 8)}},
	})
}

// takeTurns N makes two ranks work by turns, N times each: one of them waits for the other
// whenever one looks.
func takeTurns(args []string) error {
	n, _ := strconv.Atoi(args[0])
	ctx, m := context.Background(), transport.Match{Tag: 1}
	ep, _, err := Join(ctx)
	if err != nil {
		return err
	}
	defer ep.Close()
	peer := 1 - ep.Rank()
	time.Sleep(time.Duration(ep.Rank()) * 15 * time.Millisecond) // the ranks look at different times
	for i := range n {
		if ep.Rank() == 1 || i > 0 {
			if _, err := ep.Recv(ctx, peer, m, "byte", make([]byte, 1)); err != nil {
				return err
			}
		}
		time.Sleep(15 * time.Millisecond)
		if ep.Rank() == 0 || i < n-1 {
			if err := ep.Send(ctx, peer, m, "byte", make([]byte, 1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// launchShells SIZE SCRIPT is a launcher.
func launchShells(args []string) error {
	size, _ := strconv.Atoi(args[0])
	signals := make(chan os.Signal, 16)
	Notify(signals)
	return Run(context.Background(), Config{
		Size: size, Program: "sh", Args: []string{"-c", args[1]}, Unlabeled: true, Signals: signals,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Guard: []string{"guard"},
	})
}

// A result is how a job ended, with its output.
type result struct {
	out, err lockedBuilder
	end      error
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// run runs a program of this file.
func run(t *testing.T, size int, program string, args ...string) *result {
	t.Helper()
	cfg := config(t, size, program, args...)
	r := new(result)
	cfg.Stdout, cfg.Stderr = &r.out, &r.err
	r.end = Run(t.Context(), cfg)
	return r
}

// config is the configuration of a job that runs a program of this file.
func config(t *testing.T, size int, program string, args ...string) Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Size: size, Program: self, Args: append([]string{program}, args...), Guard: []string{"guard"}}
}
