// Soak runs random jobs, one after the other, until its time is over or one fails:
//
//	go run ./internal/soak -for 10m
//
// The ranks of a job are goroutines or processes, over any transport. They make random
// communicators, and calls on them: collectives, which are checked against package oracle,
// messages, agreements. Contexts end, communicators are revoked, ranks are killed and started
// anew, also while the others shrink or grow. As root, some jobs run on two network namespaces,
// of which one is lost: its cable is pulled out, or all of its processes are killed. After each
// phase of a job, and after each job, memory, descriptors, goroutines and processes are back
// where they began.
//
// A job follows from the seed and its number. Where it fails, all of it is printed, with the
// command that runs it again. When a rank is killed within a phase is up to the clock, and so
// is what the others do then: -times runs a job several times.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/launch"
)

func main() {
	if runPart(os.Args[1:]) {
		return
	}
	var s soak
	length := flag.Duration("for", 10*time.Minute, "the time after which no job is started")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64(), "the seed of all jobs")
	flag.BoolVar(&s.deadly, "deadly", false, "jobs of processes alone, which are killed until two are left")
	flag.StringVar(&s.kind, "kind", "", "one kind of job: "+strings.Join(kinds, ", "))
	flag.IntVar(&s.kills, "kills", 0, "the `number` of kills after which no job is started; 0: no limit")
	flag.IntVar(&s.first, "job", 0, "the `number` of the first job")
	flag.IntVar(&s.most, "jobs", 0, "how many `jobs` are run; 0: no limit")
	flag.IntVar(&s.times, "times", 1, "how many `times` each job is run")
	flag.Parse()
	if flag.NArg() > 0 || s.kind != "" && !slices.Contains(kinds, s.kind) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *length)
	defer cancel()
	err := s.run(ctx)
	fmt.Println(&s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runPart is the main function of the processes of a job, and reports whether this is one.
func runPart(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "rank":
		runRank(args[1:])
	case "launcher":
		if err := runLauncher(args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "guard":
		launch.Guard(os.Stdin)
	case "agent":
		if err := launch.Agent(os.Stdin, os.Stdout, []string{"guard"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		return false
	}
	return true
}

// A soak is a run of jobs, with what they have done.
type soak struct {
	seed   uint64
	deadly bool
	kind   string
	kills  int // after which no job is started; 0: no limit
	first  int // job
	most   int // jobs; 0: no limit
	times  int // each of them; 0: once

	jobs    map[string]int // by kind
	without error          // why there are no jobs on namespaces; nil if there are
	total   result
}

// run runs jobs until ctx ends, one fails, or there were enough of them.
func (s *soak) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "chorale-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.jobs = make(map[string]int)
	times := max(s.times, 1)
	if s.without = checkNamespaces(); s.without != nil && s.kind == "namespaces" {
		return s.without
	}
	var before usage
	for i := 0; ctx.Err() == nil && (s.kills == 0 || s.total.kills < s.kills) && (s.most == 0 || i < s.most*times); i++ {
		p := newProgram(s.seed, uint64(s.first+i/times), s.deadly, s.kind)
		if p.kind == "namespaces" && s.without != nil {
			continue // so that the others keep their numbers
		}
		r, err := p.run(context.Background(), dir)
		s.jobs[p.kind]++
		s.total.add(r)
		if err == nil && i >= len(kinds) { // the first jobs fill caches
			err = before.check()
		} else {
			before = currentUsage()
		}
		if err != nil {
			return fmt.Errorf("%w\n%sto run it again: go run ./internal/soak -seed %d -job %d -jobs 1 -times 20 -deadly=%v -kind %q", err, p.text(), s.seed, p.number, s.deadly, s.kind)
		}
	}
	return nil
}

// String returns what has been done, and how long survivors took to get an error.
func (s *soak) String() string {
	text := fmt.Sprintf("seed %d:", s.seed)
	for _, kind := range kinds {
		if s.jobs[kind] > 0 {
			text += fmt.Sprintf(" %d jobs %s,", s.jobs[kind], kind)
		}
	}
	text += fmt.Sprintf(" %d calls, %d kills, %d hosts lost, %d ranks started anew", s.total.calls, s.total.kills, s.total.hosts, s.total.anew)
	text += delays("a kill", s.total.delays) + delays("the loss of a host", s.total.cuts)
	if s.without != nil {
		text += fmt.Sprintf("; no jobs on namespaces: %v", s.without)
	}
	return text
}

func delays(from string, d []time.Duration) string {
	if len(d) == 0 {
		return ""
	}
	d = slices.Sorted(slices.Values(d))
	at := func(part float64) time.Duration { return d[int(part*float64(len(d)-1))].Round(time.Microsecond) }
	return fmt.Sprintf("; from %s to the error of a survivor: median %v, 99 %% %v, longest %v of %d", from, at(0.5), at(0.99), at(1), len(d))
}
