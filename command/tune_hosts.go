package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/internal/bench"
	"github.com/chorale-go/chorale/internal/tune"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/model"
)

const (
	// maxProbed bounds how many pairs of hosts exchange messages, but each host is in one.
	maxProbed = 120
	// maxMeasured is how many pairs of a class take turns in its measurement.
	maxMeasured = 3
	// probeTime is for the samples of a row of a probe.
	probeTime = 10 * time.Millisecond
	// longest is the time in µs of the longest message between two hosts that is measured.
	longest = 250e3
)

// probed are the lengths of the messages by which pairs of hosts are told apart: the start-up,
// and the bandwidth.
var probed = []int{8, 256 << 10}

// hostsToTune returns the hosts that the flags name, or nil if they name none.
func hostsToTune(cmd *cobra.Command, flags *remoteFlags) (*launch.Remote, error) {
	on, err := flags.parse()
	if on == nil || err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("map-by") {
		return nil, callErrorf("--map-by and tune: one rank on each host measures: want no --map-by")
	}
	if len(on.Hosts) < 2 {
		return nil, callErrorf("host %s alone has no messages to others: want two hosts or more, or chorale tune on that host", on.Hosts[0].Name)
	}
	for i := range on.Hosts {
		on.Hosts[i].Slots = 1
	}
	return on, nil
}

// A hostsTuning says to the ranks, one on each host, what they measure.
type hostsTuning struct {
	Hosts      []string
	Transports []string // within each host
	Quick      bool
	Progress   bool // rank 0 reports it
}

// A tuneReport is what rank 0 prints: either how far it is, or the profile.
type tuneReport struct {
	Progress string         `json:"progress,omitempty"`
	Profile  *model.Profile `json:"profile,omitempty"`
}

// measureHosts measures hosts and the links between them, and puts what they take into a
// profile.
func (t *tuning) measureHosts(ctx context.Context, on *launch.Remote, what hostsTuning, into *model.Profile) error {
	for _, h := range on.Hosts {
		what.Hosts = append(what.Hosts, h.Name)
	}
	what.Progress = t.progress != nil
	t.showProgress("starting on %d hosts", len(on.Hosts))
	defer t.showProgress("")
	var measured *model.Profile
	err := runMeasured(ctx, launch.Config{
		Size: len(on.Hosts), Transport: "tcp", Remote: on,
		Stall: -1, // ranks wait while a pair measures
	}, "tune-rank", what, func(r tuneReport) {
		if r.Profile != nil {
			measured = r.Profile
		} else {
			t.showProgress("%s", r.Progress)
		}
	})
	if err != nil {
		return err
	}
	into.Node, into.HostsProfile = measured.Node, measured.HostsProfile
	for _, l := range measured.Links {
		into.SetLink(l)
	}
	return nil
}

// newTuneRank is the verb of the ranks that tune starts on hosts.
func newTuneRank() *cobra.Command {
	return newRankVerb("tune-rank", "tune", func(ctx context.Context, c *chorale.Comm, what *hostsTuning) error {
		r := tuneRank{hostsTuning: *what, comm: c}
		if c.Size() != len(r.Hosts) {
			return fmt.Errorf("%s for %d hosts: want one on each", plural(c.Size(), "rank"), len(r.Hosts))
		}
		r.tuning.effort = effortOf(r.Quick)
		if r.Progress && c.Rank() == 0 {
			r.tuning.progress = progressReports{}
		}
		return r.measure(ctx)
	})
}

// progressReports prints lines of progress as reports.
type progressReports struct{}

func (progressReports) Write(p []byte) (int, error) {
	return len(p), printJSON(os.Stdout, tuneReport{Progress: strings.TrimPrefix(string(p), clearLine)})
}

// A tuneRank is the part of one host's rank in the measurement of several hosts. All of its
// methods that return an error are collective: all ranks call them, and get the same.
type tuneRank struct {
	hostsTuning
	tuning tuning // of its host, by itself
	comm   *chorale.Comm
	before tune.Observation // of this host, before messages to others
}

// measure measures the host of each rank, at the same time, and then the links between them.
func (r *tuneRank) measure(ctx context.Context) error {
	own := &model.Profile{Version: model.ProfileVersion}
	if err := r.tuning.measure(ctx, r.Transports, own); err != nil {
		return fmt.Errorf("host %s: %w", r.Hosts[r.comm.Rank()], err)
	}
	profile, err := r.compareHosts(ctx, own)
	if err != nil {
		return err
	}
	r.before = tune.Observe()
	if profile.HostLinks, err = r.links(ctx, own.Node.Processors); err != nil {
		return err
	}
	if r.comm.Rank() > 0 {
		return nil
	}
	return printJSON(os.Stdout, tuneReport{Profile: profile})
}

// compareHosts returns the profile of the hosts, which are put together where they take the
// same: those of the largest class first.
func (r *tuneRank) compareHosts(ctx context.Context, own *model.Profile) (*model.Profile, error) {
	all := make([]*model.Profile, len(r.Hosts))
	traits := make([][]model.Estimate, len(r.Hosts))
	for rank := range all {
		var err error
		if all[rank], err = share(ctx, r.comm, rank, own); err != nil {
			return nil, err
		}
		traits[rank] = tune.Traits(all[rank].Node, all[rank].Links)
	}
	var profile *model.Profile
	for i, class := range tune.Classes(traits) {
		slices.Sort(class)
		first := all[class[0]]
		if i == 0 {
			profile = first
			profile.Hosts = r.Hosts
			continue
		}
		other := model.HostClass{Node: first.Node, Links: first.Links}
		for _, host := range class {
			other.Hosts = append(other.Hosts, r.Hosts[host])
		}
		profile.OtherHosts = append(profile.OtherHosts, other)
	}
	return profile, nil
}

// links measures messages between pairs of hosts, short and long ones, and then a link for each
// class of pairs where they take the same.
func (r *tuneRank) links(ctx context.Context, processors int) (links []model.HostLink, err error) {
	pairs := tune.Pairs(len(r.Hosts), maxProbed)
	times := make([][]model.Estimate, len(pairs))
	for i, pair := range pairs {
		r.tuning.showProgress("%d of %d pairs of hosts: %s", i, len(pairs), r.names(pair))
		if times[i], err = r.probe(ctx, pair); err != nil {
			return nil, err
		}
	}
	classes := tune.Classes(times)
	for i, class := range classes {
		what := fmt.Sprintf("link %d of %d between hosts", i+1, len(classes))
		measured := []int{class[0]} // the fastest pair, one in the middle, and the slowest
		for k := 1; k < min(len(class), maxMeasured); k++ {
			measured = append(measured, class[k*(len(class)-1)/(min(len(class), maxMeasured)-1)])
		}
		var link model.HostLink
		var turns []tune.Pair
		for _, pair := range measured {
			turns = append(turns, pairs[pair])
			link.Measured = append(link.Measured, r.names(pairs[pair]))
		}
		slices.Sort(class)
		for _, pair := range class {
			link.Pairs = append(link.Pairs, r.names(pairs[pair]))
		}
		// The slowest pair tells which messages would take too long.
		if link.Link, err = r.link(ctx, what, turns, sizesWithin(r.tuning.sizes(), times[measured[len(measured)-1]]), processors); err != nil {
			return nil, err
		}
		links = append(links, link)
	}
	return links, nil
}

// sizesWithin returns those of some sizes whose messages take no longer than longest, by a
// probe, but no fewer than those of the probe.
func sizesWithin(sizes []int, probe []model.Estimate) []int {
	last := len(probe) - 1
	most := max(float64(probed[last]), float64(probed[last])*longest/probe[last].Value)
	return slices.DeleteFunc(slices.Clone(sizes), func(bytes int) bool { return float64(bytes) > most })
}

// probe returns the times of a short and of a long message between two hosts.
func (r *tuneRank) probe(ctx context.Context, pair tune.Pair) (times []model.Estimate, err error) {
	job := pairJobs(new(tune.Rows), probed)[0]
	config := r.tuning.config(job, r.tuning.repeats)
	config.Time = min(config.Time, probeTime)
	rows, err := r.rows(ctx, pair, config)
	if err != nil {
		return nil, err
	}
	for _, bytes := range probed {
		var medians []float64
		for _, row := range rows {
			if row.Bytes == bytes {
				medians = append(medians, row.Median)
			}
		}
		times = append(times, tune.Estimate(medians))
	}
	return times, nil
}

// link measures the link of a class of pairs, which take turns. One pair measures at a time.
func (r *tuneRank) link(ctx context.Context, what string, pairs []tune.Pair, sizes []int, processors int) (model.Link, error) {
	rows := tune.Rows{Before: r.before}
	pieces := []int{tune.PieceBytes, 4 * tune.PieceBytes, 16 * tune.PieceBytes, 64 * tune.PieceBytes}
	jobs := append(pairJobs(&rows, sizes), linkJob{&rows.Pipeline, "bcast", fmt.Sprintf("chain,segment=%d", tune.PieceBytes), 2, pieces})
	for turn := range r.tuning.repeats {
		pair := pairs[turn%len(pairs)]
		for _, job := range jobs {
			r.tuning.showProgress("%s: %d of %d passes: %s, %s", what, turn, r.tuning.repeats, r.names(pair), job.op)
			got, err := r.rows(ctx, pair, r.tuning.config(job, 1))
			if err != nil {
				return model.Link{}, err
			}
			*job.into = append(*job.into, got...)
		}
	}
	l, err := tune.Between("tcp", processors, rows)
	if err != nil {
		return l, err
	}
	l.Origin.Command, l.Origin.Host = ownVersion(), r.names(pairs[0]).String()
	return l, r.worst(ctx, &l.Origin)
}

// worst makes an origin that of the host that was the least quiet.
func (r *tuneRank) worst(ctx context.Context, o *model.Origin) error {
	const unknown = -1
	mine, all := []float64{unknown, unknown, 0}, make([]float64, 3)
	for i, x := range []*float64{o.Load, o.Steal} {
		if x != nil {
			mine[i] = *x
		}
	}
	if !o.Quiet {
		mine[2] = 1
	}
	if err := chorale.AllReduce(ctx, r.comm, all, mine, chorale.Max); err != nil {
		return err
	}
	o.Load, o.Steal = nil, nil
	if all[0] != unknown {
		o.Load = &all[0]
	}
	if all[1] != unknown {
		o.Steal = &all[1]
	}
	o.Quiet = all[2] == 0
	return nil
}

// rows measures rows between two hosts while all others wait, and returns them on all.
func (r *tuneRank) rows(ctx context.Context, pair tune.Pair, config benchConfig) (rows []bench.Row, err error) {
	if slices.Contains(pair[:], r.comm.Rank()) {
		both, err := r.comm.CreateGroup(ctx, pair[:], 0)
		if err != nil {
			return nil, err
		}
		defer both.Free()
		err = measure(ctx, both, "tcp", &config, func(row bench.Row) error {
			rows = append(rows, row)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("between %s: %w", r.names(pair), err)
		}
	}
	return share(ctx, r.comm, pair[0], rows)
}

func (r *tuneRank) names(pair tune.Pair) model.HostPair {
	return model.HostPair{r.Hosts[pair[0]], r.Hosts[pair[1]]}
}

// share returns a value of one rank on all.
func share[T any](ctx context.Context, c *chorale.Comm, root int, value T) (shared T, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return shared, err
	}
	length := []int64{int64(len(text))}
	if err := chorale.Bcast(ctx, c, length, root); err != nil {
		return shared, err
	}
	if c.Rank() != root {
		text = make([]byte, length[0])
	}
	if err := chorale.Bcast(ctx, c, text, root); err != nil {
		return shared, err
	}
	return shared, json.Unmarshal(text, &shared)
}
