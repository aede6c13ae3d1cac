package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chorale-go/chorale"
)

// The programs that the scripts run as ranks.

// progress is chorale, with progress shown on a standard error that is no terminal.
func progress() {
	terminal = func(f *os.File) io.Writer { return f }
	Main()
}

// brief is chorale, whose quick measurements of a machine are of a few sizes, once.
func brief() {
	quickly = effort{octaves: 7, repeats: 1, time: time.Millisecond}
	Main()
}

// printLines LINES LENGTH prints lines of a character that only this rank uses, half of
// them on standard error, without a pause. Then it appends its process number to the
// file that PIDS names, if any.
func printLines() {
	lines, _ := strconv.Atoi(os.Args[1])
	length, _ := strconv.Atoi(os.Args[2])
	line := []byte(rankLine(os.Getenv("CHORALE_RANK"), length) + "\n")
	for i := range lines {
		to := os.Stdout
		if i%2 == 1 {
			to = os.Stderr
		}
		to.Write(line[:length/2]) // in two writes, which the launcher must join
		to.Write(line[length/2:])
	}
	if pids := os.Getenv("PIDS"); pids != "" {
		appendPID(pids)
	}
}

func rankLine(rank string, length int) string {
	r, _ := strconv.Atoi(rank)
	return strings.Repeat(string(rune('a'+r)), length)
}

// checkLines RANKS LINES LENGTH checks the output of ranks that ran printLines.
func checkLines() {
	ranks, _ := strconv.Atoi(os.Args[1])
	lines, _ := strconv.Atoi(os.Args[2])
	length, _ := strconv.Atoi(os.Args[3])
	seen := make(map[string]int)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<22)
	for in.Scan() {
		seen[in.Text()]++
	}
	for rank := range ranks {
		r := strconv.Itoa(rank)
		line := "[" + r + "] " + rankLine(r, length)
		if seen[line] != lines {
			fmt.Printf("rank %d: %d lines, want %d\n", rank, seen[line], lines)
			os.Exit(1)
		}
		delete(seen, line)
	}
	if len(seen) > 0 {
		fmt.Printf("%d other lines\n", len(seen))
		os.Exit(1)
	}
}

// stall appends its process number to a file and blocks for ever. The go command runs
// it instead of the compiler, so that a build takes for ever.
func stall() {
	appendPID(filepath.Join(os.Getenv("WORK"), "stalled"))
	select {}
}

// appendPID appends this process's number to a file.
func appendPID(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(f, os.Getpid())
}

// poll returns when a condition holds, and panics if it does not within 30 s.
func poll(what string, holds func() bool) {
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			panic("after 30 s, it is not so that " + what)
		}
	}
}

// awaitFile returns when there is a file.
func awaitFile(name string) {
	poll("there is a file "+name, func() bool {
		_, err := os.Stat(name)
		return err == nil
	})
}

// meet returns when all ranks of a job have called it with this name. It makes no call of the
// library. Ranks on several hosts are told the same address of their launcher.
func meet(c *chorale.Comm, name string) {
	job := cmp.Or(os.Getenv("CHORALE_CONTROL"), strconv.Itoa(os.Getppid()))
	file := filepath.Join(os.Getenv("WORK"), fmt.Sprintf("%s-%x", name, job))
	appendPID(file)
	poll("all ranks meet", func() bool {
		text, _ := os.ReadFile(file)
		return bytes.Count(text, []byte("\n")) >= c.Size()
	})
}

// stalling KIND makes the others wait for the last rank, or ranks for each other, until there
// is a file named release: its lines are in the reports. The others begin to wait for the last
// rank when there is a file named begin.
func stalling() {
	released := func() { awaitFile("release") }
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		last := c.Rank() == c.Size()-1
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		switch kind := os.Args[1]; {
		case kind == "late" && last:
			appendPID("pids")
			released()
		case kind == "late":
			awaitFile("begin")
		case kind == "messages":
			go func() {
				released()
				cancel()
			}()
			_, _ = chorale.Recv(ctx, c, make([]int, 1), (c.Rank()+1)%c.Size(), 7)
			return nil
		case kind == "orders":
			meet(c, "orders") // a rank that begins late would be waited for
			other, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if first := other; c.Rank() == 0 {
				return errors.Join(chorale.Barrier(ctx, first), chorale.Barrier(ctx, c))
			}
			return errors.Join(chorale.Barrier(ctx, c), chorale.Barrier(ctx, other))
		}
		return chorale.Barrier(ctx, c)
	})
}

// sums ROUNDS [RANK END] adds up ones ROUNDS times. In the middle, the rank ends:
// killed, with an error, or by runtime.Goexit.
func sums() {
	rounds, _ := strconv.Atoi(os.Args[1])
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		sum := []int{0}
		for round := range rounds {
			if round == rounds/2 && len(os.Args) > 2 && os.Args[2] == strconv.Itoa(c.Rank()) {
				switch os.Args[3] {
				case "error":
					return errors.New("no more sums")
				case "goexit":
					runtime.Goexit()
				}
				self, _ := os.FindProcess(os.Getpid())
				self.Kill()
				select {}
			}
			if err := chorale.AllReduce(ctx, c, sum, []int{1}, chorale.Sum); err != nil {
				return err
			}
		}
		fmt.Println("sum", sum[0])
		return nil
	})
}

// failing HOW is a program whose ranks fail: all in one call, all with a panic, ranks 1 and
// 2 alone, or rank 1 because nobody receives a message.
func failing() {
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		if err := chorale.Barrier(ctx, c); err != nil { // none fails before the others have joined
			return err
		}
		time.Sleep(100 * time.Millisecond) // nor before they have left the barrier
		switch how := os.Args[1]; {
		case how == "argument":
			return chorale.AllReduce(ctx, c, make([]int, 3), make([]int, 4), chorale.Sum)
		case how == "differ" && c.Rank() == 2:
			return chorale.Bcast(ctx, c, make([]float64, 8), 0)
		case how == "differ":
			return chorale.AllReduce(ctx, c, make([]float64, 8), make([]float64, 8), chorale.Sum)
		case how == "panic", how == "some" && c.Rank() > 0:
			panic("boom")
		case how == "unreceived" && c.Rank() == 0:
			if err := chorale.Send(ctx, c, []int64{1, 2, 3}, 1, 7); err != nil {
				return err
			}
		}
		return chorale.Barrier(ctx, c)
	})
}

// locks END locks the part of rank 1 in a window on rank 0, which then ends: killed, or
// by leaving. The other ranks try to lock it.
func locks() {
	signal.Ignore(syscall.SIGTERM) // a rank that is late has its grace period to say why it fails
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		w, err := chorale.NewWindow[int](ctx, c, 1)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := w.Lock(ctx, 1); err != nil {
				return err
			}
		}
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		meet(c, "locked") // rank 0 does not end before the others have left the barrier
		switch {
		case c.Rank() != 0:
			return w.Lock(ctx, 1)
		case os.Args[1] == "killed":
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
		return nil
	})
}

// ending END RANK OTHERS is a program of which one rank ends in the middle: killed, with
// status 7, or with an error. The other ranks wait for it in a call, or they compute, and
// heed no signal. A rank that does not exist ends nothing. Each says its parent.
func ending() {
	how, victim, others := os.Args[1], os.Args[2], os.Args[3]
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		if err := chorale.Barrier(ctx, c); err != nil {
			return err
		}
		fmt.Println("begun", os.Getppid())
		switch {
		case strconv.Itoa(c.Rank()) != victim && others == "compute":
			select {}
		case strconv.Itoa(c.Rank()) != victim:
			_, err := chorale.Recv(ctx, c, make([]byte, 1), (c.Rank()+1)%c.Size(), 1)
			return err
		case how == "7":
			os.Exit(7)
		case how == "killed":
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
		return errors.New("the disk is full")
	})
}

// eventually polls a condition, and fails if it does not hold within 20 s.
func eventually(ts *testscript.TestScript, what string, holds func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("after 20 s, it is not so that %s", what)
		}
	}
}

func atoi(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// metered has one call fail, and adds until standard input ends. Rank 1 is late in each call.
// With an argument, rank 0 ends with status 3 after the first one.
func metered() {
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		if err := chorale.Bcast(ctx, c, []int{0}, c.Size()); err == nil {
			return errors.New("a root that does not exist: want an error")
		}
		var over atomic.Bool
		if c.Rank() == 0 {
			go func() {
				io.Copy(io.Discard, os.Stdin)
				over.Store(true)
			}()
		}
		for sum := []int{0}; sum[0] == 0; {
			if c.Rank() == 1 {
				time.Sleep(time.Millisecond)
			}
			mine := []int{0}
			if over.Load() {
				mine[0] = 1
			}
			if err := chorale.AllReduce(ctx, c, sum, mine, chorale.Sum); err != nil {
				if len(os.Args) > 1 {
					<-ctx.Done() // the launcher ends the others when it has told them of the lost rank
				}
				return err
			}
			if len(os.Args) > 1 && c.Rank() == 0 {
				os.Exit(3)
			}
		}
		return nil
	})
}

// lateRank adds once, for which the last rank comes late by a duration, and sends a message.
// With a second argument, rank 0 fails at the end.
func lateRank() {
	late, _ := time.ParseDuration(os.Args[1])
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		src, dst := []int{1}, []int{0}
		meet(c, "begun") // the last rank is late even if the others began later
		if c.Rank() == c.Size()-1 {
			time.Sleep(late)
		}
		if err := chorale.AllReduce(ctx, c, dst, src, chorale.Sum); err != nil {
			return err
		}
		var err error
		switch {
		case c.Size() == 1:
		case c.Rank() == 0:
			err = chorale.Send(ctx, c, []int{1, 2}, 1, 0)
		case c.Rank() == 1:
			_, err = chorale.Recv(ctx, c, make([]int, 2), 0, 0)
		}
		if len(os.Args) > 2 && c.Rank() == 0 {
			err = errors.New("no more")
		}
		if c.Rank() == 0 && err == nil {
			fmt.Println("done")
		}
		return err
	})
}
