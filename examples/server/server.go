// Package server answers requests with ranks, in two ways: a job for each request, and a
// group of ranks that lives on. Its tests show how to test code that uses chorale.
package server

import (
	"context"
	"math"
	"sync"

	"github.com/chorale-go/chorale"
)

// norm returns the Euclidean norm of a vector to all ranks. Each adds up a part.
func norm(ctx context.Context, c *chorale.Comm, vector []float64) (float64, error) {
	first, last := c.Rank()*len(vector)/c.Size(), (c.Rank()+1)*len(vector)/c.Size()
	var sum [1]float64
	for _, x := range vector[first:last] {
		sum[0] += x * x
	}
	err := chorale.AllReduce(ctx, c, sum[:], sum[:], chorale.Sum)
	return math.Sqrt(sum[0]), err
}

// Norm makes a job of its own. If ctx ends, so does the job.
func Norm(ctx context.Context, ranks int, vector []float64) (result float64, err error) {
	err = chorale.Run(ctx, ranks, func(ctx context.Context, c *chorale.Comm) error {
		x, err := norm(ctx, c, vector)
		if c.Rank() == 0 {
			result = x
		}
		return err
	})
	return result, err
}

// A Group is ranks that live on from request to request.
type Group struct {
	mu     sync.Mutex // one request after another
	work   []chan []float64
	result chan float64
	over   chan struct{} // closed when the ranks have ended
	err    error         // why they have
}

// NewGroup starts the ranks. They end with ctx.
func NewGroup(ctx context.Context, ranks int) *Group {
	g := &Group{result: make(chan float64), over: make(chan struct{})}
	for range ranks {
		g.work = append(g.work, make(chan []float64))
	}
	go func() {
		defer close(g.over)
		g.err = chorale.Run(ctx, ranks, g.serve)
	}()
	return g
}

// serve is the function of each rank.
func (g *Group) serve(ctx context.Context, c *chorale.Comm) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case vector := <-g.work[c.Rank()]:
			x, err := norm(ctx, c, vector)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				g.result <- x
			}
		}
	}
}

// Norm has the ranks compute a norm. All get the requests in one order, since they make
// their calls in one order. A request that has begun is finished: a collective that is
// canceled would end the group.
func (g *Group) Norm(vector []float64) (float64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, work := range g.work {
		select {
		case work <- vector:
		case <-g.over:
			return 0, g.err
		}
	}
	select {
	case x := <-g.result:
		return x, nil
	case <-g.over:
		return 0, g.err
	}
}
