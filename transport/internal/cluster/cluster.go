// Package cluster runs jobs for the tests and benchmarks of transports: with the
// ranks as goroutines of the test ([Job], [Each]) or as processes ([Start]).
package cluster

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

// rankVar holds "rank size" in a process that is a rank instead of running tests.
const rankVar = "CHORALE_TEST_RANK"

// A Setup says how a rank joins its job, and which patterns it can run beside
// those of [Rank.Run].
type Setup struct {
	// Join makes the endpoint of a rank. It must call allgather once, which sends
	// a word without spaces to all ranks and returns the words of all by rank.
	Join     func(rank, size int, allgather func(word string) ([]string, error)) (transport.Endpoint, error)
	Patterns map[string]Pattern

	// Command returns the command that runs a rank as a process. If it is nil, that is
	// this program.
	Command func(rank int) *exec.Cmd
}

// Serve is for TestMain. In a process that Start has started it runs the rank and
// ends the process. In any other process it says that processes under the race detector,
// which it starts from now on, end at once: else each would take a second for that.
func Serve(setup func() Setup) {
	rankAndSize := os.Getenv(rankVar)
	if rankAndSize == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
		return
	}
	if err := serve(rankAndSize, setup()); err != nil {
		fmt.Fprintln(os.Stderr, rankAndSize+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve joins the job and runs the patterns that the lines of its input name.
func serve(rankAndSize string, s Setup) error {
	var rank, size int
	if _, err := fmt.Sscan(rankAndSize, &rank, &size); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	e, err := s.Join(rank, size, func(word string) ([]string, error) {
		fmt.Println(word)
		in.Scan()
		return strings.Fields(in.Text()), in.Err()
	})
	if err != nil {
		return err
	}
	defer e.Close()
	r := Rank{Endpoint: e, patterns: s.Patterns}
	for in.Scan() {
		var pattern string
		var bytes, rounds int
		if _, err := fmt.Sscan(in.Text(), &pattern, &bytes, &rounds); err != nil {
			return err
		}
		if err := r.Run(pattern, bytes, rounds); err != nil {
			fmt.Println(err)
			return nil
		}
		fmt.Println("done")
	}
	return nil
}

// A Cluster is a job whose rank 0 is in the test's process. Every other rank is a
// process of its own.
type Cluster struct {
	Rank   // rank 0
	others []*process
}

type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start starts a job of n ranks that ends with the test. The processes inherit the
// files, from descriptor 3 on, and have env added to their environment.
func Start(t testing.TB, n int, s Setup, files []*os.File, env ...string) *Cluster {
	t.Helper()
	c := &Cluster{Rank: Rank{patterns: s.Patterns}}
	t.Cleanup(c.End)
	for rank := 1; rank < n; rank++ {
		p, err := start(s, rank, n, files, env)
		if err != nil {
			t.Fatal(err)
		}
		c.others = append(c.others, p)
	}
	e, err := s.Join(0, n, c.allgather)
	if err != nil {
		t.Fatal(err)
	}
	c.Endpoint = e
	return c
}

func start(s Setup, rank, n int, files []*os.File, env []string) (*process, error) {
	p := &process{Cmd: exec.Command(os.Args[0])}
	if s.Command != nil {
		p.Cmd = s.Command(rank)
	}
	p.Env = append(append(os.Environ(), fmt.Sprintf("%s=%d %d", rankVar, rank, n)), env...)
	p.Stderr = os.Stderr
	p.ExtraFiles = files
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.Start()
}

// allgather sends the words of all ranks to all.
func (c *Cluster) allgather(word string) ([]string, error) {
	words := []string{word}
	for i, p := range c.others {
		if !p.out.Scan() {
			return nil, fmt.Errorf("rank %d does not join", i+1)
		}
		words = append(words, p.out.Text())
	}
	for _, p := range c.others {
		fmt.Fprintln(p.in, strings.Join(words, " "))
	}
	return words, nil
}

// End ends the job. Further calls do nothing.
func (c *Cluster) End() {
	if c.Endpoint != nil {
		c.Close()
	}
	for _, p := range c.others {
		p.in.Close()
		p.Wait() // the test checks how the process ended
	}
	c.others = nil
}

// Process returns the process of a rank other than 0.
func (c *Cluster) Process(rank int) *os.Process { return c.others[rank-1].Process }

// Reply waits for the next result of a rank other than 0: "done", or the error.
func (c *Cluster) Reply(rank int) string {
	out := c.others[rank-1].out
	out.Scan()
	return out.Text()
}

// StartOthers has the ranks other than 0 run a pattern, and does not wait.
func (c *Cluster) StartOthers(pattern string, bytes, rounds int) {
	for _, p := range c.others {
		fmt.Fprintln(p.in, pattern, bytes, rounds)
	}
}

// RunAll has all ranks run a pattern, and returns when all have.
func (c *Cluster) RunAll(t testing.TB, pattern string, bytes, rounds int) {
	t.Helper()
	c.StartOthers(pattern, bytes, rounds)
	if err := c.Run(pattern, bytes, rounds); err != nil {
		t.Fatal(err)
	}
	for rank := 1; rank <= len(c.others); rank++ {
		if reply := c.Reply(rank); reply != "done" {
			t.Fatalf("rank %d replies %q", rank, reply)
		}
	}
}
