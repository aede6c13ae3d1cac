package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
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
	args      []string // the command line
	parts     []part
	rounds    int           // full runs
	rowTime   time.Duration // for the samples of one row
	limit     time.Duration // for all
	runLimit  time.Duration // for one command of a peer
	groupSize int           // the most collectives of a group
	statistic string        // of a row: median or min
	hosts     int           // the most network namespaces that have ranks; 0 for this machine alone
	write     bool          // write the files in docs
	page      string        // what follows performance- in their names; "" for performance
}

// groupSize bounds the collectives of a group. It is small, so that the sides meet the
// same state of the machine: other load and the placement of virtual processors change
// within minutes.
const groupSize = 3

func (s *settings) parse(args []string) (err error) {
	var (
		flags      = flag.NewFlagSet("compare", flag.ContinueOnError)
		ops        = flags.String("ops", "", "calls, as chorale bench names them, and whole parts: collectives, messages and forms (default all parts)")
		ranks      = flags.String("n", "", "the numbers of ranks (default 2,4,8 for collectives, 2 for messages and forms)")
		sizes      = flags.String("sizes", "", "bytes of one rank's message (default 8,1024,65536,1048576,4194304 for collectives, some of them for messages and forms)")
		transports = flags.String("transports", "", "our transports, and shm-alloc: shm with buffers from Alloc; those that do not exist here are omitted (default inproc,shm,shm-alloc,tcp for collectives, some of them for messages and forms)")
		short      = flags.Bool("short", false, "a quick look: n of 2 and 4, few sizes, one run")
	)
	flags.IntVar(&s.rounds, "rounds", 3, "the number of full runs: in each, every side measures everything by new processes")
	flags.DurationVar(&s.rowTime, "time", 30*time.Millisecond, "for the samples of one row")
	flags.DurationVar(&s.limit, "limit", 27*time.Minute, "no run begins that would end later")
	flags.DurationVar(&s.runLimit, "run-limit", time.Minute, "for one command of a peer; a command that takes longer is killed and not repeated")
	flags.StringVar(&s.statistic, "figure", "median", "the statistic of a row that is compared: median, or min if other programs disturb the machine")
	hosts := flags.String("hosts", "", "compare between so many hosts, as in 2,4: network namespaces of this machine, with two ranks on each; takes root")
	flags.BoolVar(&s.write, "write", false, "write docs/performance.md, .json and .svg, or those of performance-hosts")
	flags.StringVar(&s.page, "page", "", "with --write, write docs/performance-`NAME`.md, .json and .svg: the page of another machine")
	s.args = args
	if err := flags.Parse(args); err != nil {
		return err
	}
	s.groupSize = groupSize
	if *short {
		s.rounds, s.rowTime, s.runLimit, s.groupSize = 1, 10*time.Millisecond, 12*time.Second, 100
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
	if !pageName.MatchString(s.page) {
		return fmt.Errorf("page %q: want letters, digits and -", s.page)
	}
	if *hosts != "" {
		if err := s.parseHosts(flags, *hosts, ops, ranks, sizes, transports); err != nil {
			return err
		}
	}
	return s.parseParts(*ops, *ranks, *sizes, *transports, *short)
}

// pageName is what may follow performance- in a name of a file.
var pageName = regexp.MustCompile(`^[A-Za-z0-9-]*$`)

// parseParts sets the parts; an empty list stands for the default.
func (s *settings) parseParts(ops, ranks, sizes, transports string, short bool) (err error) {
	s.parts = chooseParts(ops)
	for i := range s.parts {
		p := &s.parts[i]
		switch {
		case ranks != "":
			if p.ranks, err = numbers(ranks); err != nil {
				return err
			}
		case short:
			p.ranks = slices.DeleteFunc(p.ranks, func(n int) bool { return n > 4 })
		}
		switch {
		case sizes != "":
			if p.sizes, err = numbers(sizes); err != nil {
				return err
			}
		case short:
			p.sizes = []int{8, 64 << 10}
		}
		if transports != "" {
			p.transports = strings.Split(transports, ",")
		}
		p.transports = slices.DeleteFunc(p.transports, func(t string) bool {
			return !slices.Contains(launch.Transports, withoutAlloc(t)) || t == "auto"
		})
		if len(p.transports) == 0 {
			return fmt.Errorf("transports %s: want some of %s", transports, strings.Join(launch.Transports, ", "))
		}
	}
	return nil
}

// parseHosts sets what differs in a comparison between hosts.
func (s *settings) parseHosts(flags *flag.FlagSet, hosts string, ops, ranks, sizes, transports *string) error {
	named := named(flags)
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
	if !named["ops"] {
		*ops = collectives
	}
	if !named["sizes"] && !named["short"] {
		*sizes = "8,1024,65536,1048576"
	}
	if !named["limit"] {
		s.limit = 8 * time.Minute
	}
	if !named["time"] && !named["short"] {
		s.rowTime = 100 * time.Millisecond
	}
	if !named["page"] {
		s.page = "hosts"
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
	sides, omitted, err := build(ctx, s, dir, namespaces)
	if err != nil {
		return err
	}
	for _, why := range omitted {
		fmt.Fprintln(os.Stderr, why)
	}
	fmt.Fprintln(os.Stderr, s.estimate(sides))
	began := time.Now()
	m, err := measure(ctx, s, sides)
	if err != nil {
		return err
	}
	r := newReport(s, m, began)
	r.Omitted = append(omitted, m.failed...)
	if err := r.text(os.Stdout); err != nil || !s.write {
		return err
	}
	return r.write("docs")
}
