package inproc

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/transport"
)

// A Job is a set of ranks that can send each other messages.
type Job struct {
	endpoints    []Endpoint
	spinning     spinPolicy
	stallTimeout time.Duration                   // after which a sleeping rank checks for a stall
	taggedPair   atomic.Pointer[taggedPairCells] // of two ranks; made at first use

	mu      sync.Mutex // guards the fields below and, where they say so, those of endpoints and links
	links   map[linkID]*link
	ended   int                  // how many endpoints have ended
	aborted *transport.PeerError // the notice of the first one that gave up
	waiting map[*Endpoint]int    // endpoints with calls that wait for tagged messages, and how many
}

// A linkID names a link.
type linkID struct {
	from, to int
	context  uint32
}

// New makes a job of n ranks. It panics if n is negative.
func New(n int) *Job {
	j := &Job{
		endpoints:    make([]Endpoint, n),
		spinning:     spinPolicy{start: time.Now()},
		stallTimeout: 10*time.Millisecond + time.Duration(n)*50*time.Microsecond,
		links:        map[linkID]*link{},
	}
	if n > processors.Parallel() {
		j.spinning.resume.Store(never)
	}
	for rank := range j.endpoints {
		j.endpoints[rank].job = j
		j.endpoints[rank].rank = rank
		j.endpoints[rank].tagged.endpoint = &j.endpoints[rank]
	}
	return j
}

// Endpoint returns the endpoint of a rank, 0 ≤ rank < n.
func (j *Job) Endpoint(rank int) *Endpoint { return &j.endpoints[rank] }

// An Endpoint is one rank's attachment to a job. It implements
// [transport.Endpoint].
type Endpoint struct {
	job    *Job
	rank   int
	failed atomic.Pointer[failure]      // which operations fail from now on; nil: none
	cached [8]atomic.Pointer[commState] // of comms, by context modulo 8
	tagged taggedQueue

	// Under Job.mu.
	comms   map[uint32]*commState // by context
	members map[uint32][]int      // by communicator
	notice  *transport.PeerError  // the termination notice; nil until the endpoint has ended

	transport.PrivateMemory // which all ranks can attach
}

var _ transport.Endpoint = (*Endpoint)(nil)

// Rank returns the endpoint's rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the job.
func (e *Endpoint) Size() int { return len(e.job.endpoints) }
