package tcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"go.uber.org/goleak"
)

// rankVar holds "rank size" in a process that TestMain runs as a rank instead
// of the tests.
const rankVar = "CHORALE_TCP_TEST_RANK"

func TestMain(m *testing.M) {
	if part := os.Getenv(rankVar); part != "" {
		if err := serve(part); err != nil {
			fmt.Fprintln(os.Stderr, part+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve is the life of a rank in a process of its own: it prints its address,
// reads those of all, and then does what the lines of its input say.
func serve(part string) error {
	var rank, size int
	if _, err := fmt.Sscan(part, &rank, &size); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	e, err := join(rank, strings.Fields(in.Text()), l)
	if err != nil {
		return err
	}
	defer e.Close()
	p := player{Endpoint: e}
	for in.Scan() {
		var what string
		var bytes, rounds int
		if _, err := fmt.Sscan(in.Text(), &what, &bytes, &rounds); err != nil {
			return err
		}
		if err := p.play(what, bytes, rounds); err != nil {
			fmt.Println(err)
			return nil
		}
		fmt.Println("done")
	}
	return nil
}

func join(rank int, addrs []string, l net.Listener) (*Endpoint, error) {
	return New(Config{
		Rank: rank, Size: len(addrs), Listener: l,
		Lookup: func(_ context.Context, rank int) (string, error) { return addrs[rank], nil },
	})
}

// A player is a rank with memory that it keeps.
type player struct {
	transport.Endpoint
	out, into []byte
}

// play does rounds of one pattern: "swap" is what an allreduce of two ranks by
// recursive doubling does, with as many steps as it takes for more ranks;
// "pour" is rank 0 sending to rank 1, which acknowledges the last message;
// "wait" is every rank waiting for rank 0.
func (p *player) play(what string, bytes, rounds int) error {
	ctx := context.Background()
	rank := p.Rank()
	if cap(p.out) < bytes {
		p.out, p.into = make([]byte, bytes), make([]byte, bytes)
	}
	out, into := p.out[:bytes], p.into[:bytes]
	to := []int{0}
	swap := transport.Step{
		Signature: transport.Signature{Call: "allreduce sum float64 count=1 algorithm=recursive-doubling"},
		Sends:     []transport.Send{{To: to, Data: out}},
		Recvs:     []transport.Recv{{Into: into}},
	}
	send := transport.Step{Sends: []transport.Send{{To: []int{1 - rank}, Data: out}}}
	recv := transport.Step{Recvs: []transport.Recv{{From: 1 - rank, Into: into}}}
	switch what {
	case "swap":
		for range rounds {
			swap.Signature.Sequence++
			for d := 1; d < p.Size(); d *= 2 {
				to[0] = rank ^ d
				swap.Recvs[0].From = rank ^ d
				if err := p.Exchange(ctx, swap); err != nil {
					return err
				}
			}
		}
		return nil
	case "pour":
		step := [...]transport.Step{send, recv}[rank]
		for range rounds {
			if err := p.Exchange(ctx, step); err != nil {
				return err
			}
		}
		ack := [...]transport.Step{recv, send}[rank]
		if rank == 0 {
			ack.Recvs[0].Into = nil
		} else {
			ack.Sends[0].Data = nil
		}
		return p.Exchange(ctx, ack)
	case "wait":
		return p.Exchange(ctx, transport.Step{Recvs: []transport.Recv{{From: 0}}})
	}
	return p.playLetters(what, bytes, rounds)
}

// A troupe is a job whose ranks other than 0 are processes.
type troupe struct {
	player // rank 0
	ranks  []*actor
}

type actor struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// processes starts a job of n ranks.
func processes(t testing.TB, n int) *troupe {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	job := new(troupe)
	addrs := []string{l.Addr().String()}
	for rank := 1; rank < n; rank++ {
		a := &actor{Cmd: exec.Command(os.Args[0])}
		a.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", rankVar, rank, n))
		a.Stderr = os.Stderr
		out, err := a.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if a.in, err = a.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
		a.out = bufio.NewScanner(out)
		a.out.Scan()
		addrs = append(addrs, a.out.Text())
		job.ranks = append(job.ranks, a)
	}
	for _, a := range job.ranks {
		fmt.Fprintln(a.in, strings.Join(addrs, " "))
	}
	e, err := join(0, addrs, l)
	if err != nil {
		t.Fatal(err)
	}
	job.Endpoint = e
	t.Cleanup(func() {
		job.Close()
		for _, a := range job.ranks {
			a.in.Close()
			a.Wait() // how it ended is the test's business
		}
	})
	return job
}

// order has the other ranks play something.
func (job *troupe) order(what string, bytes, rounds int) {
	for _, a := range job.ranks {
		fmt.Fprintln(a.in, what, bytes, rounds)
	}
}

// perform has all ranks play something, and returns when they have.
func (job *troupe) perform(t testing.TB, what string, bytes, rounds int) {
	t.Helper()
	job.order(what, bytes, rounds)
	if err := job.play(what, bytes, rounds); err != nil {
		t.Fatal(err)
	}
	for _, a := range job.ranks {
		if a.out.Scan(); a.out.Text() != "done" {
			t.Fatalf("another rank says %q", a.out.Text())
		}
	}
}

func TestAKilledRankIsLostToWhoWaitsForIt(t *testing.T) {
	large := make([]byte, 64<<20)
	for name, step := range map[string]transport.Step{
		"receive": {Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}},
		"send":    {Sends: []transport.Send{{To: []int{1}, Data: large}}},
		"both":    {Sends: []transport.Send{{To: []int{1}, Data: large}}, Recvs: []transport.Recv{{From: 1, Into: make([]byte, 1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			job := processes(t, 2)
			job.perform(t, "swap", 8, 1) // they are connected
			e := job.Endpoint.(*Endpoint)
			failed := make(chan error)
			go func() { failed <- e.Exchange(context.Background(), step) }()
			until(e, func() bool { return len(e.ops) > 0 })
			job.ranks[0].Process.Kill()
			checkPeer(t, <-failed, 1, transport.ErrLost, "")
		})
	}
}

func TestAFailureTravelsToWhoWaits(t *testing.T) {
	job := processes(t, 4)
	job.perform(t, "swap", 8, 1)
	for _, a := range job.ranks[1:] {
		fmt.Fprintln(a.in, "wait", 0, 0) // for rank 0
	}
	job.ranks[0].Process.Kill()
	into := make([]byte, 1)
	err := job.Exchange(context.Background(), transport.Step{Recvs: []transport.Recv{{From: 1, Into: into}}})
	checkPeer(t, err, 1, transport.ErrLost, "")
	for i, a := range job.ranks[1:] {
		a.out.Scan()
		if got, want := a.out.Text(), "rank 0: the rank gave up: "+err.Error(); got != want {
			t.Errorf("rank %d got %q, want %q", i+2, got, want)
		}
	}
}
