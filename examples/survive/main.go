// Survive fits a line to points that are distributed over the ranks (linear regression, by
// gradient descent), and goes on when ranks are lost: those that are left divide the points
// anew, and continue from the last step on which all have agreed. Any rank can make any of
// the points; a program with data of its own would read them from a file.
//
//	chorale run -n 5 --on-failure continue ./examples/survive -die 0,3
//	chorale run -n 5 --respawn 1 ./examples/survive -die 2
//
// It uses AllReduce for each step, and Agree after every ten. When a call fails it uses
// Revoke and Shrink, and Grow to take in ranks that were started anew.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale"
)

const (
	points = 1000
	steps  = 400
	every  = 10 // steps between two agreements
	rate   = 0.5
)

// point returns the i-th point. All are near the line 2x + 1.
func point(i int) (x, y float64) {
	x = float64(i)/points - 0.5
	return x, 2*x + 1 + 0.1*math.Sin(float64(7*i))
}

// A state is what the ranks go on from.
type state struct {
	Step         int64
	Slope, Level float64
}

func main() {
	die := flag.String("die", "", "the `ranks` that are killed in step 205, as in 2,3")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		doomed := !c.Respawned() && isIn(c.Rank(), *die)
		var done state // on which all have agreed
		for isNew := true; done.Step < steps; {
			next, failed := attempt(ctx, c, done, isNew, doomed)
			if failed != nil {
				if err := c.Revoke(); err != nil { // so that nobody waits for this rank
					return err
				}
			}
			ok, err := agree(ctx, c, failed == nil)
			if err != nil {
				return err
			}
			if ok {
				done, isNew = next, false
			}
			if !ok || len(c.Lost()) > 0 {
				if c, err = renew(ctx, c); err != nil {
					return err
				}
				isNew = true
			}
		}
		if c.Rank() > 0 {
			return nil
		}
		return check(done, c.Size())
	})
}

// isIn reports whether a list of ranks has a rank.
func isIn(rank int, list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if name == strconv.Itoa(rank) {
			return true
		}
	}
	return false
}

// attempt does some steps.
func attempt(ctx context.Context, c *chorale.Comm, s state, isNew, doomed bool) (state, error) {
	if isNew { // a rank that was started anew gets the state of the others
		all := make([]state, c.Size())
		if err := chorale.AllGather(ctx, c, all, []state{s}); err != nil {
			return s, err
		}
		for _, other := range all {
			if other.Step > s.Step {
				s = other
			}
		}
	}
	for range every {
		if doomed && s.Step == 205 {
			kill()
		}
		sums := gradient(s, c.Rank(), c.Size())
		if err := chorale.AllReduce(ctx, c, sums, sums, chorale.Sum); err != nil {
			return s, err
		}
		s = s.next(sums)
	}
	return s, nil
}

// gradient returns the gradient of the squared distances of a rank's points.
func gradient(s state, rank, size int) []float64 {
	sums := make([]float64, 2)
	for i := rank; i < points; i += size {
		x, y := point(i)
		off := s.Slope*x + s.Level - y
		sums[0] += 2 * off * x
		sums[1] += 2 * off
	}
	return sums
}

func (s state) next(gradient []float64) state {
	return state{s.Step + 1, s.Slope - rate/points*gradient[0], s.Level - rate/points*gradient[1]}
}

// kill ends this process as the system does that has no memory left.
func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Kill() == nil {
		select {}
	}
}

// agree reports whether no rank that is left has failed: the same on all of them.
func agree(ctx context.Context, c *chorale.Comm, ok bool) (bool, error) {
	vote := uint64(0)
	if ok {
		vote = 1
	}
	vote, err := c.Agree(ctx, vote)
	return vote == 1, err
}

// renew returns a communicator of the ranks that are left, and of those that were started
// anew.
func renew(ctx context.Context, c *chorale.Comm) (*chorale.Comm, error) {
	for {
		left, err := c.Shrink(ctx)
		if err != nil {
			return nil, err
		}
		c.Free()
		grown, err := left.Grow(ctx)
		switch {
		case err == nil:
			left.Free()
			return grown, nil
		case errors.Is(err, chorale.ErrArgument): // nothing starts ranks anew here
			return left, nil
		}
		c = left // another rank is lost
	}
}

// check compares the result with that of one rank, and prints it.
func check(got state, ranks int) error {
	var want state
	for want.Step < steps {
		want = want.next(gradient(want, 0, 1))
	}
	if math.Abs(got.Slope-want.Slope) > 1e-9 || math.Abs(got.Level-want.Level) > 1e-9 {
		return fmt.Errorf("%+v after the loss of ranks: one rank gets %+v", got, want)
	}
	fmt.Printf("%d ranks after %d steps: y = %.4fx + %.4f\n", ranks, got.Step, got.Slope, got.Level)
	return nil
}
