package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

func main() {
	var s settings
	if err := s.parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	args        []string // the command line
	transports  []string
	collectives []string // nil for all
	ranks       []int
	sizes       []int // bytes of the whole vector
	time        time.Duration
	rounds      int
	quick       bool   // the profile
	profile     string // an old one, or "" to make one
	short       bool
	write       bool
	keep, from  string // files of a record, or ""
}

// The sizes of whole vectors, in bytes.
var (
	allSizes   = []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}
	shortSizes = []int{64, 64 << 10}
)

func (s *settings) parse(args []string) (err error) {
	flags := flag.NewFlagSet("truth", flag.ContinueOnError)
	transports := flags.String("transports", "inproc,shm,tcp", "the transports")
	collectives := flags.String("ops", "", "the collectives (default all)")
	ranks := flags.String("n", "2,4,8", "the numbers of ranks")
	flags.DurationVar(&s.time, "time", 10*time.Millisecond, "for the samples of a cell in a round")
	flags.IntVar(&s.rounds, "rounds", 2, "how often everything is measured, each time by new processes")
	flags.BoolVar(&s.quick, "quick", false, "measure the profile in ten seconds for each transport, and not in a minute")
	flags.StringVar(&s.profile, "profile", "", "a `FILE` with a profile, which then is not made")
	flags.BoolVar(&s.short, "short", false, "few cells, to see that all works")
	flags.BoolVar(&s.write, "write", false, "write docs/truth.md and docs/truth.svg")
	flags.StringVar(&s.keep, "keep", "", "write the profile and all cells into a `FILE`, too")
	flags.StringVar(&s.from, "from", "", "a `FILE` of --keep, whose cells are simulated again and not measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: want flags alone", flags.Arg(0))
	}
	if s.rounds < 1 {
		return fmt.Errorf("--rounds %d: want 1 or more", s.rounds)
	}
	s.args, s.sizes = args, allSizes
	s.transports = strings.Split(*transports, ",")
	if *collectives != "" {
		s.collectives = strings.Split(*collectives, ",")
		for _, name := range s.collectives {
			if _, err := sched.ParseCollective(name); err != nil {
				return err
			}
		}
	}
	for _, text := range strings.Split(*ranks, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			return fmt.Errorf("--n %s: want numbers of ranks, 2 or more", *ranks)
		}
		s.ranks = append(s.ranks, n)
	}
	if s.short {
		s.quick, s.sizes, s.time = true, shortSizes, time.Millisecond
		s.transports, s.ranks = s.transports[:1], []int{2, 3}
		s.collectives = []string{"bcast", "allreduce", "allgather"}
	}
	return nil
}

// run measures, or reads what was measured, and prints or writes the report.
func run(ctx context.Context, s settings) error {
	r, err := s.report(ctx)
	if err != nil {
		return err
	}
	if s.keep != "" {
		if err := r.keep(s.keep); err != nil {
			return err
		}
	}
	if !s.write {
		_, err := fmt.Print(r.text())
		return err
	}
	return r.write("docs")
}

// report measures everything, or reads it.
func (s *settings) report(ctx context.Context) (*report, error) {
	if s.from != "" {
		return readReport(s.from)
	}
	dir, err := os.MkdirTemp("", "truth")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	chorale := filepath.Join(dir, "chorale")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", chorale, "./cmd/chorale").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./cmd/chorale: %w\n%s", err, out)
	}
	r := &report{Date: time.Now().Format("2 January 2006"), Command: strings.Join(append([]string{"go run ./truth"}, s.args...), " "), Rounds: s.rounds}
	made := s.profile == ""
	if made {
		s.profile = filepath.Join(dir, "profile.json")
	}
	for _, transport := range s.transports {
		if made {
			if err := s.tune(ctx, chorale, transport); err != nil {
				return nil, err
			}
		}
		var all []cell
		for range s.rounds {
			var cells []cell
			for _, p := range s.ranks {
				of, err := s.measure(ctx, chorale, transport, p)
				if err != nil {
					return nil, fmt.Errorf("%s, %d ranks: %w", transport, p, err)
				}
				cells = append(cells, of...)
			}
			all = merge(all, cells)
			fmt.Fprintf(os.Stderr, "%s: %d cells\n", transport, len(cells))
		}
		r.cells = append(r.cells, all...)
	}
	text, err := os.ReadFile(s.profile)
	if err != nil {
		return nil, err
	}
	r.profile, err = model.ParseProfile(text)
	return r, err
}

// tune measures a transport, into the profile.
func (s *settings) tune(ctx context.Context, chorale, transport string) error {
	args := []string{"tune", "--transport", transport, "--profile", s.profile}
	if s.quick {
		args = append(args, "--quick")
	}
	_, err := output(ctx, chorale, args...)
	return err
}

// output runs a command, and returns what it prints.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout = &out
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out.Bytes(), nil
}

// measure measures all algorithms of the collectives on p ranks: vectors of each size, or
// parts whose vector has that size.
func (s *settings) measure(ctx context.Context, chorale, transport string, p int) (cells []cell, err error) {
	var whole, parts []string
	for _, op := range sched.Collectives() {
		if s.collectives != nil && !slices.Contains(s.collectives, op.String()) {
			continue
		}
		if (&sched.Schedule{Collective: op}).Partitioned() {
			parts = append(parts, op.String())
		} else {
			whole = append(whole, op.String())
		}
	}
	for _, group := range []struct {
		ops    []string
		pieces int
	}{{whole, 1}, {parts, p}} {
		if len(group.ops) == 0 {
			continue
		}
		rows, err := s.rows(ctx, chorale, transport, p, group.ops, group.pieces)
		if err != nil {
			return cells, err
		}
		for _, row := range rows {
			if row.Simulated != nil {
				cells = append(cells, cell{Row: row, vector: row.Bytes * group.pieces, rounds: []float64{row.Median}})
			}
		}
	}
	return cells, nil
}

// rows measures some collectives with vectors of each size in a number of pieces.
func (s *settings) rows(ctx context.Context, chorale, transport string, p int, ops []string, pieces int) ([]bench.Row, error) {
	var sizes []string
	last := 0
	for _, bytes := range s.sizes {
		if n := max(8, bytes/pieces/4*4); n > last {
			sizes = append(sizes, strconv.Itoa(n))
			last = n
		}
	}
	args := append([]string{"bench"}, ops...)
	args = append(args, "-n", strconv.Itoa(p), "--transport", transport, "--algorithm", "all", "--sizes", strings.Join(sizes, ","),
		"--time", s.time.String(), "--predict", "--profile", s.profile, "--format", "json")
	out, err := output(ctx, chorale, args...)
	if err != nil {
		return nil, err
	}
	var v struct {
		Rows []bench.Row `json:"rows"`
	}
	return v.Rows, json.Unmarshal(out, &v)
}
