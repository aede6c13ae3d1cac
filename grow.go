package chorale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/internal/agreement"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/transport"
)

// Grow returns a communicator of the ranks of c and of the processes that were started in
// the place of lost ranks, under chorale run --respawn, and that no other Grow has taken in.
// All ranks of c call it, and none of them is lost: c mostly comes from [Comm.Shrink]. In a
// new process, the communicator that [Main] or [Join] gives it is this one, and
// [Comm.Respawned] says so: it has nothing yet, and the others send it what it needs. Ranks
// are ordered as in the job at its beginning; a new process has the place of the lost one.
// If there is no new process, the communicator has the ranks of c alone.
//
// Grow waits until processes that the launcher has started are there, 5 s at most. Those
// that come later wait for the next Grow. If a rank is lost meanwhile, all get an error, as if
// ctx ends on one of them; c can be shrunk, and Grow called again. Without a launcher that
// starts ranks anew, as in [Run], Grow is an ErrArgument.
//
// The communicator has connections and shared memory of its own, beside those of c, so that
// a Grow takes about as long as the start of a job, without its processes. They stay until
// [Comm.Close], which closes all that this process has. The errors of its calls count the
// ranks of the new communicator, as those of another job.
//
// Before, the ranks of c agree that none is lost: see [Comm.Agree] for the cost.
func (c *Comm) Grow(ctx context.Context) (*Comm, error) {
	a, err := c.beginAgreement(ctx, growCall)
	if err != nil {
		return nil, err
	}
	defer a.end()
	j := c.job
	if j.env.Regroup == nil {
		return nil, c.argumentErrorf(growCall.String(), "nothing starts ranks anew here: want a job of chorale run --respawn")
	}
	v, err := a.run(ctx, agreement.Value{Flags: ^uint64(0), Number: rand.Uint32()})
	switch {
	case err != nil:
		return nil, err
	case len(v.Lost) > 0:
		return nil, a.failed(&transport.PeerError{Peer: c.jobRank(v.Lost[0]), Err: transport.ErrLost, Reason: "the communicator has to be shrunk first"})
	}
	var ranks []int
	for _, rank := range j.ranksOf(&c.group) {
		ranks = append(ranks, j.launchRank(rank))
	}
	slices.Sort(ranks)
	endpoint, env, err := j.env.Regroup(ctx, uint64(v.Number), ranks)
	if err != nil {
		return nil, a.failed(j.countedByEndpoint(err))
	}
	return j.grow(endpoint, env), nil
}

// countedByEndpoint returns an error of launch, which counts the ranks of the job at its
// beginning, as one whose rank is the endpoint's. A process in whose place this endpoint never
// had one has no rank here, and is not named as one.
func (j *job) countedByEndpoint(err error) error {
	var peer *transport.PeerError
	if !errors.As(err, &peer) || peer.Peer < 0 || j.env.Ranks == nil && peer.Peer < j.endpoint.Size() {
		return err
	}
	rank := slices.Index(j.env.Ranks, peer.Peer)
	if rank < 0 {
		return fmt.Errorf("a new process, of rank %d of the job at its beginning: %w: %s", peer.Peer, peer.Err, peer.Reason)
	}
	return &transport.PeerError{Peer: rank, Err: peer.Err, Reason: peer.Reason}
}

// Respawned reports whether this process was started in the place of a lost rank: then c is
// what others have got from [Comm.Grow].
func (c *Comm) Respawned() bool { return c != nil && c.job.family.first().env.Respawned }

// A family is the jobs of a process: the one that it has joined, and those that it has got
// from Grow since.
type family struct {
	mu   sync.Mutex
	jobs []*job
}

func (f *family) first() *job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[0]
}

// each calls do with all endpoints, and returns the first error.
func (f *family) each(do func(e transport.Endpoint) error) (err error) {
	f.mu.Lock()
	jobs := slices.Clone(f.jobs)
	f.mu.Unlock()
	for _, j := range jobs {
		err = cmp.Or(err, do(j.endpoint))
	}
	return err
}

// grow returns the communicator of all ranks of a new job of this process.
func (j *job) grow(endpoint transport.Endpoint, env launch.JobEnv) *Comm {
	c := newRecordedComm(endpoint, configOf(env), env, j.recorder, j.tracer)
	c.job.family = j.family
	j.family.mu.Lock()
	defer j.family.mu.Unlock()
	j.family.jobs = append(j.family.jobs, c.job)
	return c
}
