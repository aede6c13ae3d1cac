package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/internal/tune"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// A selecting is which calls tune --select looks at, and how it decides which algorithm each
// of them takes.
type selecting struct {
	collectives []sched.Collective
	ranks       []int // nil: those that suit the processors
	predicted   bool  // by the simulation alone
	quick       bool
	command     string    // the version that measures
	progress    io.Writer // nil unless progress is shown
}

// newSelecting returns what the arguments of tune ask for; nil if they ask for no selection.
func newSelecting(ops []string, ranks []int, mode string) (*selecting, error) {
	if mode == "" {
		switch {
		case len(ops) > 0:
			return nil, fmt.Errorf("%s: want --select before the names of collectives", ops[0])
		case len(ranks) > 0:
			return nil, errors.New("-n is for --select: the machine is measured with as many ranks as it takes")
		}
		return nil, nil
	}
	s := &selecting{collectives: sched.Collectives(), ranks: ranks, predicted: mode == "predicted", command: ownVersion()}
	if len(ops) > 0 {
		s.collectives = nil
	}
	for _, op := range ops {
		c, err := sched.ParseCollective(op)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(s.collectives, c) {
			s.collectives = append(s.collectives, c)
		}
	}
	if slices.Contains(ranks, 1) {
		return nil, errors.New("-n 1: want 2 ranks or more: one has nobody to wait for")
	}
	return s, nil
}

// contestMemory bounds the buffers of all ranks in a contest, in bytes.
const contestMemory = 512 << 20

// sizes returns the bytes of the calls: factors of 4, or of 16 if it has to be quick, so that
// a rule for the range around each leaves no gap, or little is promised.
func (s *selecting) sizes(c sched.Collective) (all []int) {
	octaves := 2
	if s.quick {
		octaves = 4
	}
	if c == sched.Barrier {
		return []int{0}
	}
	for n := 8; n < largest; n <<= octaves {
		all = append(all, n)
	}
	return all
}

// runEach finds the algorithms for calls over some transports. What the profile lacks for that
// is measured first.
func (s *selecting) runEach(ctx context.Context, t *tuning, transports []string, profile *model.Profile) error {
	if missing := unmeasured(profile, transports); len(missing) > 0 {
		if err := t.measure(ctx, missing, profile); err != nil {
			return err
		}
	}
	for _, transport := range transports {
		if err := s.run(ctx, profile, transport); err != nil {
			return err
		}
	}
	return nil
}

// unmeasured returns the transports of which a profile has nothing.
func unmeasured(p *model.Profile, transports []string) (missing []string) {
	for _, t := range transports {
		if _, err := p.Link(t); err != nil || p.Node.Processors == 0 {
			missing = append(missing, t)
		}
	}
	return missing
}

// run makes the selection for a transport.
func (s *selecting) run(ctx context.Context, p *model.Profile, transport string) error {
	available := processors.Available()
	if transport == "inproc" {
		available = processors.Parallel()
	}
	ranks := s.ranks
	if ranks == nil {
		ranks = tune.Ranks(available, s.quick)
	}
	before := tune.Observe()
	defer s.showProgress("")
	made := model.Selection{Version: model.SelectionVersion, Transport: transport, Processors: available, Rules: s.kept(p, transport, available, ranks)}
	var spreads []float64
	for _, n := range ranks {
		contests, err := s.contests(ctx, p, transport, available, n)
		if err != nil {
			return err
		}
		outcomes := make([]tune.Outcome, len(contests))
		if s.predicted {
			for i, t := range contests {
				outcomes[i] = t.Predict()
			}
		} else if spreads, err = s.race(ctx, transport, contests, outcomes, spreads); err != nil {
			return fmt.Errorf("%s: %w", transport, err)
		}
		for _, c := range s.collectives {
			var of []tune.Outcome
			for _, o := range outcomes {
				if o.Collective == c {
					of = append(of, o)
				}
			}
			made.Rules = append(made.Rules, tune.Rules(of)...)
		}
	}
	if len(spreads) == 0 {
		spreads = []float64{0}
	}
	made.Origin = before.Origin(spreads, available)
	made.Origin.Command = s.command
	p.SetSelection(made)
	return nil
}

// kept returns the rules of an earlier selection that are not made anew.
func (s *selecting) kept(p *model.Profile, transport string, available int, ranks []int) []model.Rule {
	rules := []model.Rule{}
	for _, old := range p.Selections {
		for _, r := range old.Rules {
			c, err := sched.ParseCollective(r.Collective)
			anew := slices.Contains(s.collectives, c) && slices.Contains(ranks, r.Ranks)
			if old.Transport == transport && old.Processors == available && err == nil && !anew {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// contests returns the calls on a number of ranks.
func (s *selecting) contests(ctx context.Context, p *model.Profile, transport string, available, ranks int) (all []tune.Contest, err error) {
	for _, c := range s.collectives {
		for _, bytes := range s.sizes(c) {
			if (bench.Cell{Collective: c, Bytes: bytes}).Memory(ranks) > contestMemory {
				continue
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			s.showProgress("%s, %s: predicting %v of %s bytes", transport, plural(ranks, "rank"), c, algo.FormatBytes(bytes))
			t, err := tune.NewContest(p, transport, available, c, ranks, bytes)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// confirmations is in how many further jobs a winner has to win.
const confirmations = 2

// race decides contests by races: in a job in which every candidate has its chance, and in
// further ones, in which the winners of the first have to win again. It appends to the spreads
// how uncertain each ratio is.
func (s *selecting) race(ctx context.Context, transport string, contests []tune.Contest, outcomes []tune.Outcome, spreads []float64) ([]float64, error) {
	var races, again []bench.Race
	var of, winners []int // the contest of each race
	for i, t := range contests {
		outcomes[i] = tune.Outcome{Contest: t}
		if len(t.Candidates) > 0 {
			races, of = append(races, t.Race("")), append(of, i)
		}
	}
	what := "racing"
	run := func(races []bench.Race, each func(race int, runners []bench.Runner)) error {
		if len(races) == 0 {
			return nil
		}
		n := 0
		return runRaces(ctx, transport, contests[0].Ranks, races, func(runners []bench.Runner) {
			for _, r := range runners[1:] {
				if r.Low > 0 {
					spreads = append(spreads, (r.High-r.Low)/r.Ratio)
				}
			}
			each(n, runners)
			n++
			s.showProgress("%s, %s: %s, %d of %d calls", transport, plural(contests[0].Ranks, "rank"), what, n, len(races))
		})
	}
	err := run(races, func(race int, runners []bench.Runner) {
		i := of[race]
		if outcomes[i] = contests[i].Decide(runners); outcomes[i].Winner.Algorithm != "" {
			again, winners = append(again, contests[i].Race(outcomes[i].Winner.Algorithm)), append(winners, i)
		}
	})
	if err != nil {
		return nil, err
	}
	what = "racing the winners again"
	for range confirmations {
		if err := run(again, func(race int, runners []bench.Runner) { outcomes[winners[race]].Confirm(runners) }); err != nil {
			return nil, err
		}
	}
	return spreads, nil
}

func (s *selecting) showProgress(format string, args ...any) {
	m := measurement{progress: s.progress}
	m.showProgress(format, args...)
}

// A raceConfig is what the ranks of a job of races have to know.
type raceConfig struct{ Races []bench.Race }

// runRaces has the ranks of a job run races, and calls each with the result of each race. Its
// processes are new, goroutines included: how fast an algorithm is depends on the memory that
// a process happens to have.
func runRaces(ctx context.Context, transport string, ranks int, races []bench.Race, each func([]bench.Runner)) error {
	return runMeasured(ctx, launch.Config{Size: ranks, Transport: transport}, "race-rank", raceConfig{races}, each)
}

// run runs the races on each rank. Rank 0 emits the results.
func (r raceConfig) run(ctx context.Context, c *chorale.Comm, emit func([]bench.Runner) error) error {
	b := bench.Bench{Comm: c, Time: time.Second, Verify: true}
	cells := make([]bench.Cell, len(r.Races))
	for i, race := range r.Races {
		cells[i] = race.Cell
	}
	if err := b.Reserve(cells); err != nil {
		return err
	}
	for _, race := range r.Races {
		runners, err := b.Race(ctx, race)
		if err == nil && c.Rank() == 0 {
			err = emit(runners)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newRaceRank is the verb of the ranks that race.
func newRaceRank() *cobra.Command {
	return newRankVerb("race-rank", "tune", func(ctx context.Context, c *chorale.Comm, config *raceConfig) error {
		return config.run(ctx, c, func(runners []bench.Runner) error { return printJSON(os.Stdout, runners) })
	})
}
