package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chorale-go/chorale"
)

// The programs that the scripts run as ranks.

// talk LINES LENGTH prints lines of a letter that only this rank uses, half of
// them on standard error, as fast as it can.
func talk() {
	lines, _ := strconv.Atoi(os.Args[1])
	length, _ := strconv.Atoi(os.Args[2])
	line := []byte(letters(os.Getenv("CHORALE_RANK"), length) + "\n")
	for i := range lines {
		to := os.Stdout
		if i%2 == 1 {
			to = os.Stderr
		}
		to.Write(line[:length/2]) // so that the launcher gets it in two
		to.Write(line[length/2:])
	}
}

func letters(rank string, length int) string {
	r, _ := strconv.Atoi(rank)
	return strings.Repeat(string(rune('a'+r)), length)
}

// untorn RANKS LINES LENGTH reads what so many ranks that talk have printed.
func untorn() {
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
		line := "[" + r + "] " + letters(r, length)
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

// stall notes its process in a file and waits for ever. It makes a build that
// takes long: the go command runs it in the place of its compiler.
func stall() {
	f, err := os.OpenFile(filepath.Join(os.Getenv("WORK"), "stalled"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(f, os.Getpid())
	select {}
}

// sums ROUNDS [RANK END] adds up ones again and again. In the middle, the rank
// ends: killed, or with an error.
func sums() {
	rounds, _ := strconv.Atoi(os.Args[1])
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		sum := []int{0}
		for round := range rounds {
			if round == rounds/2 && len(os.Args) > 2 && os.Args[2] == strconv.Itoa(c.Rank()) {
				if os.Args[3] == "error" {
					return errors.New("no more sums")
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

func eventually(ts *testscript.TestScript, what string, holds func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("it does not come about that %s", what)
		}
	}
}

func atoi(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}
