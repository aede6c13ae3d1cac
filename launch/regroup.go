package launch

import (
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale/launch/internal/control"
)

// lossTime is within which time a launcher notices that a process of a host has ended.
const lossTime = time.Second

// A regroup is the calls of a [Regroup] with one id and the same members, as the launcher sees
// them.
type regroup struct {
	id      uint64
	members []int                   // ranks of the job
	called  []int                   // those of them that have
	since   time.Time               // all have
	late    *time.Timer             // looks again whether newcomers have come
	failed  *control.RegroupFailure // those that call later get the same
	made    *group
}

func (r *regroup) stop() {
	if r.late != nil {
		r.late.Stop()
	}
}

// regroup handles the message of a rank of the job, as a member of the group.
func (g *groups) regroup(o *group, rank int, m control.RegroupMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.place(rank) < 0 {
		return // it has ended
	}
	if m.GaveUp != "" {
		for _, r := range o.calls {
			if r.id == m.ID && slices.Contains(r.called, rank) {
				g.giveUp(o, r, rank, m.GaveUp)
			}
		}
		return
	}
	if err := o.check(rank, m.Members); err != nil {
		o.answer(rank, control.RegroupFailure{ID: m.ID, Rank: -1, Reason: err.Error()})
		return
	}
	r := g.call(o, m)
	switch {
	case r.failed != nil:
		o.answer(rank, *r.failed)
		return
	case slices.Contains(r.called, rank):
		o.answer(rank, control.RegroupFailure{ID: m.ID, Rank: -1, Reason: "the id is that of another call: want one for each call"})
		return
	}
	r.called = append(r.called, rank)
	for _, member := range r.members {
		_, left := o.server.Ended(o.indexOf(member))
		if o.place(member) < 0 || left && !slices.Contains(r.called, member) {
			g.fail(o, r, o.failureOf(member))
			return
		}
	}
	g.makeReady()
}

// call returns the calls to which a message belongs. A rank that is a member of others with
// the same id cannot be in both, so both fail.
func (g *groups) call(o *group, m control.RegroupMessage) *regroup {
	r := &regroup{id: m.ID, members: m.Members}
	for _, other := range o.calls {
		switch {
		case other.id != m.ID:
		case slices.Equal(other.members, m.Members):
			return other
		case other.made == nil && other.failed == nil && slices.ContainsFunc(other.members, func(rank int) bool { return slices.Contains(m.Members, rank) }):
			why := control.RegroupFailure{Rank: -1, Reason: fmt.Sprintf("ranks have called it with the members %v and %v: want the same on all", other.members, m.Members)}
			g.fail(o, other, why)
			g.fail(o, r, why)
		}
	}
	if len(o.calls) >= keptCalls {
		if i := slices.IndexFunc(o.calls, func(r *regroup) bool { return r.made != nil || r.failed != nil }); i >= 0 {
			o.calls = slices.Delete(o.calls, i, i+1)
		}
	}
	o.calls = append(o.calls, r)
	return r
}

// keptCalls is how many calls of a group are kept: those that are over, for members that call
// later than others, or give up.
const keptCalls = 64

// check returns what is wrong with the members of a call.
func (o *group) check(rank int, members []int) error {
	if !slices.Contains(members, rank) {
		return fmt.Errorf("members %v: want the caller, rank %d, among them", members, rank)
	}
	for i, member := range members {
		if i > 0 && member <= members[i-1] || o.indexOf(member) < 0 {
			return fmt.Errorf("members %v: want ranks of the endpoint, each once, in ascending order", members)
		}
	}
	return nil
}

// indexOf returns the rank in the group of a rank of the job, or -1.
func (o *group) indexOf(rank int) int {
	if i, ok := slices.BinarySearch(o.ranks, rank); ok {
		return i
	}
	return -1
}

// answer tells a member that there is no new endpoint.
func (o *group) answer(rank int, f control.RegroupFailure) {
	if place := o.place(rank); place >= 0 {
		o.server.SendFailure(place, f)
	}
}

// fail ends a call, unless its group is made.
func (g *groups) fail(o *group, r *regroup, f control.RegroupFailure) {
	if r.failed != nil || r.made != nil {
		return
	}
	r.stop()
	f.ID = r.id
	r.failed = &f
	for _, rank := range r.called {
		o.answer(rank, f)
	}
}

// failureOf returns the failure because of a rank of the job that has ended or left.
func (o *group) failureOf(rank int) control.RegroupFailure {
	how, left := o.server.Ended(o.indexOf(rank))
	if left {
		how = ""
	}
	return control.RegroupFailure{Rank: rank, Left: left, Reason: how}
}

// giveUp handles that a member no longer wants the new endpoint.
func (g *groups) giveUp(o *group, r *regroup, rank int, why string) {
	if r.made == nil {
		g.fail(o, r, control.RegroupFailure{Rank: rank, GaveUp: true, Reason: why})
	} else if place := r.made.place(rank); place >= 0 {
		r.made.lose(place, "it gave up joining: "+why, false)
	}
}

// left handles that a rank closes its endpoint. It has no part in what it has not called.
func (g *groups) left(o *group, rank int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range o.calls {
		if slices.Contains(r.members, rank) {
			g.fail(o, r, control.RegroupFailure{Rank: rank, Left: true})
		}
	}
}

// makeReady makes the groups that all members have asked for, unless newcomers are expected.
func (g *groups) makeReady() {
	if g.over {
		return
	}
	for _, o := range g.all {
		for _, r := range o.calls {
			switch {
			case r.failed != nil || r.made != nil || len(r.called) < len(r.members):
				continue
			case r.since.IsZero():
				r.since = time.Now()
			}
			wait := time.Until(r.since.Add(g.patience(o, r)))
			if r.stop(); wait <= 0 {
				g.make(o, r)
				continue
			}
			r.late = time.AfterFunc(wait, func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.makeReady()
			})
		}
	}
}

// patience is how long to wait for newcomers, once all members have called. Members may have
// noticed the loss of a rank before the launcher has, and the rank may come again.
func (g *groups) patience(o *group, r *regroup) time.Duration {
	doubtful := func(rank int) bool {
		place := o.place(rank)
		if place < 0 || slices.Contains(r.members, rank) {
			return false
		}
		_, left := o.server.Ended(place)
		return !left
	}
	switch {
	case g.expectsNewcomers():
		return NewcomerTimeout
	case !g.ending && g.respawned < g.job.cfg.Respawn && slices.ContainsFunc(o.ranks, doubtful):
		return lossTime
	}
	return 0
}

// expectsNewcomers reports whether newcomers will wait for a group that do not yet.
func (g *groups) expectsNewcomers() bool {
	return slices.ContainsFunc(g.running(), func(rank int) bool {
		return g.processes[rank].waiting == nil && g.isNewcomer(rank) && g.joining(rank) == nil
	})
}

// joining returns the group that a newcomer joins, or nil.
func (g *groups) joining(rank int) *group {
	for _, o := range slices.Backward(g.all) {
		if complete, failed := o.server.Assembly(); o.number > 0 && o.place(rank) >= 0 && !complete && !failed {
			return o
		}
	}
	return nil
}

// make makes a group of the members and of the newcomers that wait.
func (g *groups) make(o *group, r *regroup) {
	r.stop()
	ranks := slices.Clone(r.members)
	for _, rank := range g.running() {
		if g.processes[rank].waiting != nil {
			ranks = append(ranks, rank)
		}
	}
	slices.Sort(ranks)
	made, err := g.add(ranks)
	if err != nil {
		g.fail(o, r, control.RegroupFailure{Rank: -1, Reason: fmt.Sprintf("the launcher cannot serve a new group: %v", err)})
		return
	}
	r.made = made
	answer := control.Group{
		ID: r.id, Number: made.number, Control: made.server.Address(), Ranks: ranks, Hosts: g.layout(ranks),
	}
	for _, rank := range ranks {
		if p := &g.processes[rank]; p.waiting != nil {
			p.waiting.Take(answer)
			p.waiting = nil
		} else {
			o.server.SendGroup(o.place(rank), answer)
		}
	}
}

// newcomer handles that a newcomer waits for a group, perhaps since it has not come into
// another one.
func (g *groups) newcomer(n *control.Newcomer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.processes[n.Rank]
	if g.over || p.ended || !p.newcomer {
		n.Dismiss()
		return
	}
	if o := g.joining(n.Rank); o != nil {
		o.lose(o.place(n.Rank), notJoined, false)
	}
	p.waiting = n
	g.makeReady()
}

const notJoined = "it has not joined the new group"

// newcomerGone handles that a newcomer waits no longer. If it has not joined its group, it
// is about to end, or to wait again.
func (g *groups) newcomerGone(n *control.Newcomer, joined bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := &g.processes[n.Rank]; p.waiting == n {
		p.waiting = nil
	}
	o := g.joining(n.Rank)
	if joined || o == nil {
		return
	}
	time.AfterFunc(dropTimeout, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.joining(n.Rank) == o {
			o.lose(o.place(n.Rank), notJoined, false)
		}
	})
}

// dismiss tells the newcomers that nobody is left whom they could join.
func (g *groups) dismiss() {
	g.over = true
	for _, rank := range g.running() {
		p := &g.processes[rank]
		p.dismissed = true
		if p.waiting != nil {
			p.waiting.Dismiss()
		}
	}
}
