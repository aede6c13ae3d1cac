package chorale

import (
	"sync"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/selection"
)

// A jobShape is what the programs of a job's calls depend on beside the calls.
type jobShape struct {
	ranks, processors int
	machine           *selection.Machine
}

// Of more shapes than shapesMax, Run keeps no programs, nor of jobs whose programs take more
// than jobBytesMax.
const (
	shapesMax   = 64
	jobBytesMax = 1 << 20
)

// keptJobs has what jobs of [Run] have compiled, for later jobs of the same shape: compiling
// takes longer than a short call. The garbage collector drops what is not used again soon.
var keptJobs struct {
	mu    sync.Mutex
	pools map[jobShape]*keptPrograms
}

// keptPrograms are those of the jobs of one shape: a *[]compiledCalls of each, by rank.
type keptPrograms struct{ sync.Pool }

// take returns the programs of an earlier job, which nobody else has from now on, or none.
func (k *keptPrograms) take(ranks int) []compiledCalls {
	if k != nil {
		if job, ok := k.Get().(*[]compiledCalls); ok {
			return *job
		}
	}
	return make([]compiledCalls, ranks)
}

// keep keeps the programs of a job that is over.
func (k *keptPrograms) keep(job []compiledCalls) {
	bytes := 0
	for _, calls := range job {
		for _, call := range calls {
			bytes += call.size
		}
	}
	if k != nil && 0 < bytes && bytes <= jobBytesMax {
		k.Put(&job)
	}
}

// compiledCalls are those of one rank.
type compiledCalls []*call

// keptJobsOf returns the programs of a shape, or nil. The environment may override the
// selection, and say something else, or name a file, for the next job: then there are none.
func keptJobsOf(shape jobShape) *keptPrograms {
	if selection.Override() != "" {
		return nil
	}
	keptJobs.mu.Lock()
	defer keptJobs.mu.Unlock()
	p := keptJobs.pools[shape]
	if p == nil && len(keptJobs.pools) < shapesMax {
		if keptJobs.pools == nil {
			keptJobs.pools = make(map[jobShape]*keptPrograms)
		}
		p = new(keptPrograms)
		keptJobs.pools[shape] = p
	}
	return p
}

// adopt caches the calls that this rank has compiled in an earlier job.
func (c *Comm) adopt(calls compiledCalls) {
	for _, call := range calls {
		call.plan.UseMemory(&c.memory)
		c.cache.add(call)
	}
}

// growStack grows the stack of a new goroutine to what calls need. While it is that short,
// it is moved in a fraction of the time that it takes in the depth of a call.
//
//go:noinline
func growStack(rank int) byte {
	var frame [8 << 10]byte
	return frame[rank%len(frame)]
}

// surrender returns the calls that this rank has compiled, for a later job. No call can be
// made on c any more. It returns none while a call is in progress, in another goroutine.
func (c *Comm) surrender() (calls compiledCalls) {
	if !c.state.CompareAndSwap(idle, freed) {
		return nil
	}
	c.job.mu.Lock()
	c.released = true // with the whole job
	c.job.mu.Unlock()
	for _, call := range c.cache.queue {
		if call.key.schedule == nil && !algo.IsFile(call.key.algorithm) { // which the caller may change
			call.plan.UseMemory(nil) // that of this job
			calls = append(calls, call)
		}
	}
	return calls
}
