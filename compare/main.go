package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chorale-go/chorale/launch"
)

func main() {
	var s settings
	if err := s.parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// settings are the flags: what to measure, and for how long.
type settings struct {
	args       []string // the command line
	ops        []string
	ranks      []int
	sizes      []int
	transports []string // ours
	rounds     int
	rowTime    time.Duration // for the samples of one row
	limit      time.Duration // for all
	runLimit   time.Duration // for one run of a peer
	statistic  string        // of a row: median or min
	hosts      int           // the most network namespaces that have ranks; 0 for this machine alone
	write      bool          // write the files in docs
}

func (s *settings) parse(args []string) (err error) {
	var (
		flags      = flag.NewFlagSet("compare", flag.ContinueOnError)
		ops        = flags.String("ops", "bcast,reduce,scatter,gather,allgather,reduce-scatter,allreduce,alltoall,barrier", "the collectives and the patterns of messages, as chorale bench names them")
		ranks      = flags.String("n", "2,4,8", "the numbers of ranks")
		sizes      = flags.String("sizes", "8,1024,65536,1048576,4194304", "bytes of one rank's message")
		transports = flags.String("transports", "inproc,shm,shm-alloc,tcp", "our transports, and shm-alloc: shm with buffers from Alloc; those that do not exist here are omitted")
		short      = flags.Bool("short", false, "a quick look: n of 2 and 4, few sizes, one round")
	)
	flags.IntVar(&s.rounds, "rounds", 4, "how often each side measures everything")
	flags.DurationVar(&s.rowTime, "time", 100*time.Millisecond, "for the samples of one row")
	flags.DurationVar(&s.limit, "limit", 19*time.Minute, "no round begins that would end later")
	flags.DurationVar(&s.runLimit, "run-limit", time.Minute, "for one run of a peer, and a quarter of it for MPICH with more ranks than processors; a run that takes longer is killed and not repeated")
	flags.StringVar(&s.statistic, "figure", "median", "the statistic of a row that is compared: median, or min if other programs disturb the machine")
	hosts := flags.String("hosts", "", "compare between so many hosts, as in 2,4: network namespaces of this machine, with two ranks on each; takes root")
	forms := flags.Bool("forms", false, "compare the forms of calls: nonblocking, prepared, uneven and others; a bounded choice of calls, sizes and ranks, which the other flags change")
	flags.BoolVar(&s.write, "write", false, "write docs/performance.md, .json and .svg, or those of performance-hosts")
	s.args = args
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		*ranks, *sizes, s.rounds, s.rowTime, s.runLimit = "2,4", "8,65536", 1, 10*time.Millisecond, 12*time.Second
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not a flag: see --help", flags.Arg(0))
	}
	if s.rounds < 1 {
		return fmt.Errorf("%d rounds: want 1 or more", s.rounds)
	}
	if s.statistic != "median" && s.statistic != "min" {
		return fmt.Errorf("figure %q: want median or min", s.statistic)
	}
	if *hosts != "" {
		if err := s.parseHosts(flags, *hosts, ranks, sizes, transports); err != nil {
			return err
		}
	}
	if *forms {
		if s.write {
			return fmt.Errorf("--forms and --write: the pages in docs are of plain calls")
		}
		s.chooseForms(flags, ops, ranks, sizes, transports)
	}
	s.ops = strings.Split(*ops, ",")
	for _, t := range strings.Split(*transports, ",") {
		if slices.Contains(launch.Transports, withoutAlloc(t)) && t != "auto" {
			s.transports = append(s.transports, t)
		}
	}
	if s.transports == nil {
		return fmt.Errorf("transports %s: want some of %s", *transports, strings.Join(launch.Transports, ", "))
	}
	if s.ranks, err = numbers(*ranks); err != nil {
		return err
	}
	s.sizes, err = numbers(*sizes)
	return err
}

// formsCompared are calls of every form that bench has: for each form, those in which a
// library can do something else than in the plain call.
const formsCompared = "bcast:nonblocking,allreduce:nonblocking,alltoall:nonblocking,barrier:nonblocking," +
	"bcast:overlap,allreduce:overlap,alltoall:overlap," +
	"bcast:prepared,allreduce:prepared,alltoall:prepared," +
	"scatter:uneven,gather:uneven,allgather:uneven,reduce-scatter:uneven,alltoall:uneven," +
	"allreduce:half,alltoall:half,split," +
	"allreduce:func,allreduce:slices,reduce-scatter:slices," +
	"exchange:columns,scatter:columns,gather:columns"

// chooseForms sets what differs in a comparison of forms, unless a flag says otherwise.
func (s *settings) chooseForms(flags *flag.FlagSet, ops, ranks, sizes, transports *string) {
	named := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { named[f.Name] = true })
	for name, choice := range map[string]struct {
		flag  *string
		value string
	}{
		"ops": {ops, formsCompared}, "n": {ranks, "2,4"}, "sizes": {sizes, "8,65536,1048576"}, "transports": {transports, "inproc,shm"},
	} {
		if !named[name] && !(named["short"] && name == "sizes") {
			*choice.flag = choice.value
		}
	}
	if !named["time"] && !named["short"] {
		s.rowTime = 30 * time.Millisecond
	}
}

// parseHosts sets what differs in a comparison between hosts.
func (s *settings) parseHosts(flags *flag.FlagSet, hosts string, ranks, sizes, transports *string) error {
	named := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { named[f.Name] = true })
	if named["n"] || named["transports"] {
		return fmt.Errorf("--hosts %s: want neither --n nor --transports: each host has %d ranks, and TCP connects the hosts", hosts, ranksPerHost)
	}
	all, err := numbers(hosts)
	if err != nil {
		return err
	}
	if s.hosts = slices.Max(all); slices.Min(all) < 2 || s.hosts > 64 {
		return fmt.Errorf("--hosts %s: want 2 to 64", hosts)
	}
	for i := range all {
		all[i] *= ranksPerHost
	}
	*ranks, *transports = list(all), "tcp"
	if !named["sizes"] && !named["short"] {
		*sizes = "8,1024,65536,1048576"
	}
	if !named["limit"] {
		s.limit = 8 * time.Minute
	}
	return nil
}

func numbers(list string) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q: want numbers, 1 or more, as in 2,4,8", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// run measures, prints the report, and writes the files in docs if asked to.
func run(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var namespaces *hosts
	if s.hosts > 0 {
		if namespaces, err = newHosts(ctx, s.hosts, dir); err != nil {
			return err
		}
		defer namespaces.close()
	}
	sides, err := build(ctx, s, dir, namespaces)
	if err != nil {
		return err
	}
	began := time.Now()
	m, err := measure(ctx, s, sides)
	if err != nil {
		return err
	}
	r := newReport(s, m, began)
	if err := r.text(os.Stdout); err != nil || !s.write {
		return err
	}
	return r.write("docs")
}
