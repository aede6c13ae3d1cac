package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/chorale-go/chorale/internal/logging"
	"github.com/chorale-go/chorale/internal/ranklist"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/transport"
)

// jobRank returns the rank of this process in the job.
func (e JobEnv) jobRank() int {
	if e.Ranks != nil {
		return e.Ranks[e.Rank]
	}
	return e.Rank
}

// host returns the number of this rank's host, where a launcher has counted them.
func (e JobEnv) host() int {
	if e.Group == 0 || e.Hosts == nil {
		return 0
	}
	return e.Hosts[e.Rank]
}

// inGroup returns what this rank knows of the job in a group of its ranks; env is what it
// knew when it was started.
func (e JobEnv) inGroup(g control.Group) JobEnv {
	e.Group = g.Number
	e.Rank, e.Size = slices.Index(g.Ranks, e.Rank), len(g.Ranks)
	e.Secret, e.Control, e.Hosts, e.Memory = groupSecret(e.Secret, g.Number), g.Control, g.Hosts, 0
	e.Ranks = nil
	if last := len(g.Ranks) - 1; g.Ranks[last] != last {
		e.Ranks = g.Ranks
	}
	if e.Mixed && e.Size == 1 { // as the launcher does without memory for one rank
		e.Transport, e.Mixed = "tcp", false
	}
	return e
}

// joinGroup joins a group. The error names a rank as the job counts it.
func joinGroup(ctx context.Context, job JobEnv, g control.Group) (*attached, JobEnv, error) {
	if !slices.Contains(g.Ranks, job.Rank) || g.Hosts != nil && len(g.Hosts) != len(g.Ranks) {
		return nil, job, fmt.Errorf("the launcher's group of ranks %v on hosts %v has no place for rank %d", g.Ranks, g.Hosts, job.Rank)
	}
	a, env, err := attach(ctx, job.inGroup(g))
	if err != nil {
		var peer *transport.PeerError
		if errors.As(err, &peer) && peer.Peer >= 0 && peer.Peer < len(g.Ranks) {
			err = &transport.PeerError{Peer: g.Ranks[peer.Peer], Err: peer.Err, Reason: peer.Reason}
		}
		return nil, env, err
	}
	env.Regroup = a.regroupOf(job)
	a.begin(env, nil)
	return a, env, nil
}

// regroupOf returns the [Regroup] of this endpoint; job is what the rank knew when it was
// started.
func (a *attached) regroupOf(job JobEnv) Regroup {
	return func(ctx context.Context, id uint64, members []int) (transport.Endpoint, JobEnv, error) {
		if ctx == nil {
			return nil, JobEnv{}, errNoContext
		}
		g, err := a.launcher.Regroup(ctx, id, members)
		if err != nil {
			return nil, JobEnv{}, fmt.Errorf("rank %d does not regroup: %w", a.rank, err)
		}
		ep, env, err := joinGroup(ctx, job, g)
		if err != nil {
			a.launcher.LeaveGroup(id, err)
			return nil, JobEnv{}, fmt.Errorf("rank %d does not regroup: %w", a.rank, err)
		}
		newcomers := slices.DeleteFunc(slices.Clone(g.Ranks), func(rank int) bool { return slices.Contains(members, rank) })
		logging.Logger().Info("regrouped", "rank", env.Rank, "size", env.Size, "newcomers", ranklist.String(newcomers))
		return ep, env, nil
	}
}

// joinAsNewcomer joins the group for which other ranks regroup, in a process that was
// started in the place of a lost one. If the job ends before, so does the process.
func joinAsNewcomer(ctx context.Context, job JobEnv) (transport.Endpoint, JobEnv, error) {
	cfg, err := job.dialConfig()
	if err != nil {
		return nil, job, err
	}
	for {
		g, done, err := control.Wait(ctx, cfg)
		if errors.Is(err, control.ErrDismissed) {
			os.Exit(0)
		}
		if err != nil {
			return nil, job, err
		}
		ep, env, err := joinGroup(ctx, job, g)
		done(err == nil)
		if err == nil {
			ep.logJoined(env)
			return ep, env, nil
		}
		if !errors.As(err, new(*transport.PeerError)) {
			return nil, env, err
		}
	}
}
