package stage

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// rankVar holds "rank size" in a process that plays a rank instead of the tests.
const rankVar = "CHORALE_TEST_RANK"

// A Company is how the ranks of a job come together, and what they play beside
// what all can.
type Company struct {
	// Join makes the endpoint of a rank. It must call meet, which tells all ranks
	// a word without spaces, and returns those of all by rank.
	Join func(rank, size int, meet func(word string) ([]string, error)) (transport.Endpoint, error)
	Own  map[string]Pattern
}

// Serve is for TestMain. In a process that Start has started it plays a rank, and
// ends the process; elsewhere it does nothing.
func Serve(company func() Company) {
	place := os.Getenv(rankVar)
	if place == "" {
		return
	}
	if err := serve(place, company()); err != nil {
		fmt.Fprintln(os.Stderr, place+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is the life of a rank in a process of its own: it meets the others, and
// then does what the lines of its input say.
func serve(place string, c Company) error {
	var rank, size int
	if _, err := fmt.Sscan(place, &rank, &size); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	e, err := c.Join(rank, size, func(word string) ([]string, error) {
		fmt.Println(word)
		in.Scan()
		return strings.Fields(in.Text()), in.Err()
	})
	if err != nil {
		return err
	}
	defer e.Close()
	p := Player{Endpoint: e, own: c.Own}
	for in.Scan() {
		var what string
		var bytes, rounds int
		if _, err := fmt.Sscan(in.Text(), &what, &bytes, &rounds); err != nil {
			return err
		}
		if err := p.Play(what, bytes, rounds); err != nil {
			fmt.Println(err)
			return nil
		}
		fmt.Println("done")
	}
	return nil
}

// A Troupe is a job whose ranks other than 0 are processes.
type Troupe struct {
	Player // rank 0
	actors []*actor
}

type actor struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start starts a job of n ranks that ends with the test. The processes have the
// files, from number 3 on, and what is said of the environment.
func Start(t testing.TB, n int, c Company, files []*os.File, env ...string) *Troupe {
	t.Helper()
	job := &Troupe{Player: Player{own: c.Own}}
	t.Cleanup(job.End)
	for rank := 1; rank < n; rank++ {
		a, err := start(rank, n, files, env)
		if err != nil {
			t.Fatal(err)
		}
		job.actors = append(job.actors, a)
	}
	e, err := c.Join(0, n, job.meet)
	if err != nil {
		t.Fatal(err)
	}
	job.Endpoint = e
	return job
}

func start(rank, n int, files []*os.File, env []string) (*actor, error) {
	a := &actor{Cmd: exec.Command(os.Args[0])}
	a.Env = append(append(os.Environ(), fmt.Sprintf("%s=%d %d", rankVar, rank, n)), env...)
	a.Stderr = os.Stderr
	a.ExtraFiles = files
	out, err := a.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.out = bufio.NewScanner(out)
	if a.in, err = a.StdinPipe(); err != nil {
		return nil, err
	}
	return a, a.Start()
}

// meet tells all ranks the words of all.
func (job *Troupe) meet(word string) ([]string, error) {
	words := []string{word}
	for i, a := range job.actors {
		if !a.out.Scan() {
			return nil, fmt.Errorf("rank %d does not join", i+1)
		}
		words = append(words, a.out.Text())
	}
	for _, a := range job.actors {
		fmt.Fprintln(a.in, strings.Join(words, " "))
	}
	return words, nil
}

// End ends the job, once.
func (job *Troupe) End() {
	if job.Endpoint != nil {
		job.Close()
	}
	for _, a := range job.actors {
		a.in.Close()
		a.Wait() // how it ended is the test's business
	}
	job.actors = nil
}

// Process returns that of a rank other than 0.
func (job *Troupe) Process(rank int) *os.Process { return job.actors[rank-1].Process }

// Says returns what a rank other than 0 says next: "done", or why it is not.
func (job *Troupe) Says(rank int) string {
	out := job.actors[rank-1].out
	out.Scan()
	return out.Text()
}

// Order has the other ranks play something.
func (job *Troupe) Order(what string, bytes, rounds int) {
	for _, a := range job.actors {
		fmt.Fprintln(a.in, what, bytes, rounds)
	}
}

// Perform has all ranks play something, and returns when they have.
func (job *Troupe) Perform(t testing.TB, what string, bytes, rounds int) {
	t.Helper()
	job.Order(what, bytes, rounds)
	if err := job.Play(what, bytes, rounds); err != nil {
		t.Fatal(err)
	}
	for rank := 1; rank <= len(job.actors); rank++ {
		if says := job.Says(rank); says != "done" {
			t.Fatalf("rank %d says %q", rank, says)
		}
	}
}
