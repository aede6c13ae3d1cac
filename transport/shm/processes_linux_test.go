package shm

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/transport"
	"go.uber.org/goleak"
)

// rankVar holds "rank size" in a process that TestMain runs as a rank instead
// of the tests. Its memory is file 3.
const rankVar = "CHORALE_SHM_TEST_RANK"

func TestMain(m *testing.M) {
	if place := os.Getenv(rankVar); place != "" {
		if err := serve(place); err != nil {
			fmt.Fprintln(os.Stderr, place+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector takes a second to end
	flag.Parse()
	flag.Set("test.parallel", "6") // jobs in which ranks are killed mostly wait
	goleak.VerifyTestMain(m)
}

// serve is the life of a rank in a process of its own: it says that it is there,
// and then does what the lines of its input say.
func serve(place string) error {
	var rank, size int
	if _, err := fmt.Sscan(place, &rank, &size); err != nil {
		return err
	}
	memory := os.NewFile(3, "memory")
	e, err := New(Config{Rank: rank, Size: size, Memory: memory, Apart: os.Getenv("CHORALE_SHM_TEST_APART") != ""})
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Println("joined")
	p := player{Endpoint: e}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
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

// A player is a rank with memory that it keeps.
type player struct {
	transport.Endpoint
	out, into []byte
	calls     uint32 // Exchanges so far
	lines     uint64
	best      time.Duration // that some rounds in a row took, on average
}

// play does rounds of one pattern: "swap" is what an allreduce by recursive
// doubling does, without the adding, and "direct" what one does in which
// everybody sends to everybody; "bcast" is rank 0 sending to all, which
// acknowledge the last message; "pour" is rank 0 sending to rank 1; "wait" is
// every rank waiting for rank 0; for "line", see there.
func (p *player) play(what string, bytes, rounds int) error {
	rank, size := p.Rank(), p.Size()
	if cap(p.out) < bytes {
		p.out, p.into = make([]byte, bytes), make([]byte, bytes*size)
	}
	out, into := p.out[:bytes], p.into[:bytes]
	call := call(what)
	var steps []transport.Step
	switch what {
	case "swap":
		for d := 1; d < size; d *= 2 {
			steps = append(steps, transport.Step{
				Sends: []transport.Send{{To: []int{rank ^ d}, Data: out}},
				Recvs: []transport.Recv{{From: rank ^ d, Into: into}},
			})
		}
	case "direct":
		step := transport.Step{Sends: []transport.Send{{Data: out}}}
		for d := 1; d < size; d++ {
			from := (rank + d) % size
			step.Sends[0].To = append(step.Sends[0].To, from)
			step.Recvs = append(step.Recvs, transport.Recv{From: from, Into: p.into[from*bytes : (from+1)*bytes]})
		}
		steps = []transport.Step{step}
	case "bcast", "pour":
		step, ack := transport.Step{}, transport.Step{}
		for d := 1; d < size && (d == 1 || what == "bcast"); d++ {
			switch rank {
			case 0:
				if step.Sends == nil {
					step.Sends = []transport.Send{{Data: out}}
				}
				step.Sends[0].To = append(step.Sends[0].To, d)
				ack.Recvs = append(ack.Recvs, transport.Recv{From: d})
			case d:
				step.Recvs = []transport.Recv{{From: 0, Into: into}}
				ack.Sends = []transport.Send{{To: []int{0}}}
			}
		}
		if err := p.repeat(call, []transport.Step{step}, rounds); err != nil {
			return err
		}
		return p.repeat(call, []transport.Step{ack}, 1)
	case "wait":
		return p.repeat(call, []transport.Step{{Recvs: []transport.Recv{{From: 0}}}}, 1)
	case "line":
		p.line(rounds)
		return nil
	default:
		return fmt.Errorf("no pattern %q", what)
	}
	return p.repeat(call, steps, rounds)
}

func call(what string) transport.Signature {
	return transport.Signature{Call: "allreduce sum float64 count=1 algorithm=" + what}
}

// batch is how many rounds are timed together: they take less than a process
// is left alone on a busy machine.
const batch = 50

func (p *player) repeat(call transport.Signature, steps []transport.Step, rounds int) error {
	for done := 0; done < rounds; {
		start, n := time.Now(), min(batch, rounds-done)
		for range n {
			p.calls++
			call.Sequence = p.calls
			for _, step := range steps {
				step.Signature = call
				if err := p.Exchange(context.Background(), step); err != nil {
					return err
				}
			}
		}
		p.lap(start, n)
		done += n
	}
	return nil
}

func (p *player) lap(start time.Time, rounds int) {
	if d := time.Since(start) / time.Duration(rounds); rounds == batch && (p.best == 0 || d < p.best) {
		p.best = d
	}
}

// line has every rank write a word of its own line, and wait for all the others',
// in the bare memory: what an exchange takes at least. Where ranks share cores,
// it yields as soon as it may.
func (p *player) line(rounds int) {
	e := p.Endpoint.(*Endpoint)
	words := make([]*atomic.Uint64, e.Size())
	for rank := range words {
		words[rank] = (*atomic.Uint64)(unsafe.Pointer(&e.seg.box(rank, e.seg.boxes-1)[0])) // nobody's yet
	}
	looksMost := 3000
	if e.crowded {
		looksMost = 20
	}
	for done := 0; done < rounds; {
		start, n := time.Now(), min(batch, rounds-done)
		for range n {
			p.lines++
			words[e.Rank()].Store(p.lines)
			for _, theirs := range words {
				for looks := 0; theirs.Load() < p.lines; looks++ {
					if looks > looksMost {
						yield()
					}
				}
			}
		}
		p.lap(start, n)
		done += n
	}
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
func processes(t testing.TB, n int, env ...string) *troupe {
	t.Helper()
	memory, err := NewMemory(n, [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	job := new(troupe)
	for rank := 1; rank < n; rank++ {
		job.ranks = append(job.ranks, startActor(t, memory, rank, n, env))
	}
	for _, a := range job.ranks {
		if a.out.Scan(); a.out.Text() != "joined" {
			t.Fatalf("another rank says %q", a.out.Text())
		}
	}
	e, err := New(Config{Rank: 0, Size: n, Memory: memory, Apart: len(env) > 0})
	if err != nil {
		t.Fatal(err)
	}
	job.Endpoint = e
	t.Cleanup(job.end)
	return job
}

// end ends the job, once.
func (job *troupe) end() {
	job.Close()
	for _, a := range job.ranks {
		a.in.Close()
		a.Wait() // how it ended is the test's business
	}
	job.ranks = nil
}

func startActor(t testing.TB, memory *os.File, rank, n int, env []string) *actor {
	t.Helper()
	a := &actor{Cmd: exec.Command(os.Args[0])}
	a.Env = append(append(os.Environ(), fmt.Sprintf("%s=%d %d", rankVar, rank, n)), env...)
	a.Stderr = os.Stderr
	a.ExtraFiles = []*os.File{memory}
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
	return a
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
