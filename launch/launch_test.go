package launch

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/chorale-go/chorale/transport"
)

// The test binary is also the guard and the program of the ranks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if os.Args[1] == "guard" {
			Guard(os.Stdin)
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
	goleak.VerifyTestMain(m)
}

var programs = map[string]func(args []string) error{
	"ring":   ring,
	"absent": absent,
	"early":  early,
	"parcel": parcel,
	"stay":   stay,
	"sleep":  func([]string) error { time.Sleep(time.Hour); return nil },
}

// ring ROUNDS [RANK END] sends a token round and round. In the middle, the rank
// ends: killed, or with a status.
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
	}
	fmt.Println("token", token[0])
	return nil
}

// pass gives the token to the next rank, which adds one to it.
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

// receive takes one message of one byte.
func receive(ep transport.Endpoint, from int, into []byte) error {
	return ep.Exchange(context.Background(), transport.Step{
		Signature: transport.Signature{Call: "parcel"},
		Recvs:     []transport.Recv{{From: from, Into: into}},
	})
}

// absent is what rank 1 is: it never joins. The others wait for it.
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

// early is what rank 1 is: it leaves at once. The others wait for it.
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

// parcel has rank 1 send something and end, before rank 0 asks for it.
func parcel([]string) error {
	ep, _, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	data := []byte("a parcel")
	if ep.Rank() == 1 {
		return ep.Exchange(context.Background(), transport.Step{
			Signature: transport.Signature{Call: "parcel"},
			Sends:     []transport.Send{{To: []int{0}, Data: data}},
		})
	}
	time.Sleep(200 * time.Millisecond) // by then, rank 1 has ended
	got := make([]byte, len(data))
	err = receive(ep, 1, got)
	fmt.Printf("%s\n", got)
	return err
}

// stay joins, says so, and stays for ever.
func stay([]string) error {
	if _, _, err := Join(context.Background()); err != nil {
		return err
	}
	select {}
}

// A job is run with its output collected.
type ran struct {
	out, err lockedBuilder
	result   error
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
func run(t *testing.T, size int, program string, args ...string) *ran {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := new(ran)
	r.result = Run(t.Context(), Config{
		Size: size, Program: self, Args: append([]string{program}, args...),
		Stdout: &r.out, Stderr: &r.err, Guard: []string{"guard"},
	})
	return r
}
