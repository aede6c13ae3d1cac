package launch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/ranklist"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/launch/internal/control"
)

// A groups is what a launcher knows of the ranks of a job: of their processes, and of the
// endpoints that these have. The processes that join first are the first group; each
// [Regroup] makes another one, with a control server of its own.
//
// Its lock is taken before those of control servers, which call it without theirs.
type groups struct {
	job    *job
	config control.Config // of the control servers, without what differs

	mu        sync.Mutex
	all       []*group
	processes []rankProcess // by rank of the job
	respawned int           // how many ranks have been started anew, or will be
	ending    bool          // no lost rank is started anew any more
	over      bool          // nobody is left whom a newcomer could join
}

// A group is the ranks of one endpoint.
type group struct {
	number int // 0 for the first
	server *control.Server
	ranks  []int  // of the job, by rank of the group: in ascending order
	gone   []bool // the rank's process has ended, or it has given up joining
	calls  []*regroup
}

// A rankProcess is the process that is a rank of the job at the moment.
type rankProcess struct {
	newcomer  bool              // it is started in the place of a lost one
	ended     bool              // and none is started in its place
	dismissed bool              // it is not needed any more
	waiting   *control.Newcomer // nil if it does not wait for a group
}

// newGroups begins to serve the ranks of a job.
func newGroups(j *job, cfg control.Config) (*groups, error) {
	g := &groups{job: j, config: cfg, processes: make([]rankProcess, cfg.Size)}
	ranks := make([]int, cfg.Size)
	for rank := range ranks {
		ranks[rank] = rank
	}
	if _, err := g.add(ranks); err != nil {
		return nil, err
	}
	return g, nil
}

// add begins to serve a group. Its listener is at loopback, unless there are other hosts.
func (g *groups) add(ranks []int) (o *group, err error) {
	o = &group{number: len(g.all), ranks: ranks, gone: make([]bool, len(ranks))}
	cfg := g.config
	cfg.Size, cfg.Group = len(ranks), o.number > 0
	cfg.Layout.Hosts = g.layout(ranks)
	if len(g.job.hosts) > 0 {
		if cfg.Listener, cfg.Addresses, err = listenAll(netip.Addr{}); err != nil {
			return nil, err
		}
		cfg.Encrypted = leaveHost(strings.Split(cfg.Addresses, ","))
	}
	cfg.Stalled = func(r *stall.Report) { g.job.stalled(r, o) }
	cfg.State = func(rank int) stall.Absence { return g.job.stateOf(o.ranks[rank]) }
	cfg.Dropped = func(rank int, silent bool) {
		if silent || o.number == 0 { // else the rank may have given up joining
			g.job.dropped(o.ranks[rank], silent)
		}
	}
	if metrics := g.job.cfg.Metrics; metrics != nil {
		cfg.Metrics = func(rank int, totals []byte) { metrics(o.ranks[rank], totals) }
	}
	cfg.Regroup = func(rank int, m control.RegroupMessage) { g.regroup(o, o.ranks[rank], m) }
	cfg.Left = func(rank int) { g.left(o, o.ranks[rank]) }
	if o.number == 0 {
		cfg.Newcomer, cfg.NewcomerGone = g.newcomer, g.newcomerGone
	} else {
		cfg.Secret = groupSecret(cfg.Secret, o.number)
	}
	if o.server, err = control.NewServer(cfg); err != nil {
		return nil, err
	}
	g.all = append(g.all, o)
	return o, nil
}

// groupSecret returns the secret of a group: whoever knows that of the job can tell it.
func groupSecret(job proof.Secret, number int) proof.Secret {
	return proof.SecretOf(job.Reveal(), fmt.Sprintf("group %d", number))
}

// layout returns the host of each of these ranks. Hosts are counted in the order of their
// lowest ranks.
func (g *groups) layout(ranks []int) []int {
	if g.config.Layout.Hosts == nil {
		return nil
	}
	numbers := make(map[int]int)
	hosts := make([]int, len(ranks))
	for i, rank := range ranks {
		host := g.config.Layout.Hosts[rank]
		if _, known := numbers[host]; !known {
			numbers[host] = len(numbers)
		}
		hosts[i] = numbers[host]
	}
	return hosts
}

// first returns the group of the processes that were started first.
func (g *groups) first() *group {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[0]
}

// list returns the groups, the newest first.
func (g *groups) list() []*group {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.all)
	slices.Reverse(all)
	return all
}

// place returns the rank in the group of a rank of the job, whose process is still that of
// then; -1 if it is not.
func (o *group) place(rank int) int {
	if i, ok := slices.BinarySearch(o.ranks, rank); ok && !o.gone[i] {
		return i
	}
	return -1
}

// lose tells the group that a rank of the job is not in it any more.
func (o *group) lose(place int, how string, success bool) {
	o.gone[place] = true
	o.server.End(place, how, success)
}

// isNewcomer reports whether the process of a rank has no endpoint yet, and was started in
// the place of another one.
func (g *groups) isNewcomer(rank int) bool {
	return g.processes[rank].newcomer && !slices.ContainsFunc(g.all, func(o *group) bool {
		complete, _ := o.server.Assembly()
		return o.number > 0 && o.place(rank) >= 0 && complete
	})
}

// An ending is what follows from the end of a rank's process.
type ending struct {
	respawn   bool // another one is to be started in its place
	dismissed bool // it was not needed any more
	peer      func() int
}

// end records how the process of a rank has ended, and tells the others. With replace, its
// host can start another one. The peer of the result is called later: it waits for what the
// rank has said before its end, and returns the rank of the job because of which it has
// failed, or -1.
func (g *groups) end(rank int, how string, success, replace bool) (e ending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.processes[rank]
	e.dismissed = p.dismissed
	p.ended, p.waiting = true, nil
	others := slices.ContainsFunc(g.running(), func(other int) bool { return !g.isNewcomer(other) })
	if replace && !success && others && !g.ending && g.respawned < g.job.cfg.Respawn {
		e.respawn = true
		g.respawned++
		*p = rankProcess{newcomer: true}
	}
	var servers []func() int
	for _, o := range g.all {
		if place := o.place(rank); place >= 0 {
			o.lose(place, how, success)
			servers = append(servers, func() int {
				if peer := o.server.FailedPeer(place); peer >= 0 {
					return o.ranks[peer]
				}
				return -1
			})
		}
		for _, r := range o.calls {
			if slices.Contains(r.members, rank) {
				g.fail(o, r, o.failureOf(rank))
			}
		}
	}
	e.peer = func() int {
		for _, peer := range slices.Backward(servers) {
			if p := peer(); p >= 0 {
				return p
			}
		}
		return -1
	}
	if !others {
		g.dismiss()
	}
	g.makeReady()
	return e
}

// running returns the ranks whose processes have not ended.
func (g *groups) running() (ranks []int) {
	for rank := range g.processes {
		if !g.processes[rank].ended {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// stopRespawns has no lost rank started anew from now on.
func (g *groups) stopRespawns() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = true
}

// notStarted records that the process of a newcomer could not be started.
func (g *groups) notStarted(rank int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.processes[rank].ended = true
	g.makeReady()
}

// isOver reports whether the processes that have not ended are newcomers whom nobody needs.
func (g *groups) isOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// takeErrors returns the errors that ranks have sent since the last call, by ranks of the job.
func (g *groups) takeErrors() (all []failure.Shared) {
	for _, o := range slices.Backward(g.list()) {
		for _, e := range o.server.TakeErrors() {
			for i, rank := range e.Ranks {
				e.Ranks[i] = o.ranks[rank]
			}
			all = append(all, e)
		}
	}
	return all
}

// explain says what the ranks do: those of the newest group, and those that wait in another.
func (g *groups) explain() (texts []string) {
	for i, o := range g.list() {
		if r := o.server.Explain(0); i == 0 || r.Waits() {
			texts = append(texts, o.explained(r))
		}
	}
	return texts
}

// explained returns the text of a report, which counts ranks as the group does.
func (o *group) explained(r *stall.Report) string {
	if last := len(o.ranks) - 1; o.ranks[last] != last {
		return fmt.Sprintf("of %s, counted from 0: %s", ranklist.Name(o.ranks), r.Text())
	}
	return r.Text()
}

// close ends all connections.
func (g *groups) close() {
	g.mu.Lock()
	g.ending, g.over = true, true
	for _, o := range g.all {
		for _, r := range o.calls {
			r.stop()
		}
	}
	g.mu.Unlock()
	for _, o := range g.list() {
		o.server.Close()
	}
}
