package chorale_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// sizes are numbers of ranks, the awkward ones first. With -short, they are those whose
// ranks do everything that ranks do beside each other.
func sizes() []int {
	if testing.Short() {
		return []int{1, 2, 3, 5, 8}
	}
	return []int{1, 2, 3, 5, 7, 8, 12, 16, 17}
}

// counts are numbers of elements to try on p ranks.
func counts(p int) []int { return []int{0, 1, p - 1, p, p + 1, 1000} }

// onRanks runs f on p goroutine ranks and fails the test with what they return.
func onRanks(t *testing.T, p int, f chorale.Func) {
	t.Helper()
	if err := chorale.Run(t.Context(), p, f); err != nil {
		t.Error(err)
	}
}

// eachAlgorithm runs f once per algorithm of a collective that takes p ranks.
func eachAlgorithm(t *testing.T, c sched.Collective, p int, f func(t *testing.T, algorithm chorale.Option, commutative bool)) {
	for _, a := range algo.For(c) {
		if a.Restrictions.Allow(p) != nil {
			continue
		}
		t.Run(fmt.Sprintf("%s/p=%d", a.Name, p), func(t *testing.T) {
			f(t, chorale.WithAlgorithm(a.Name), a.Restrictions.Commutative)
		})
	}
}

// same returns an error unless a rank has what it should have.
func same[T comparable](c *chorale.Comm, what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("rank %d: %s: got %v, want %v", c.Rank(), what, got, want)
	}
	return nil
}

// vector returns n numbers that differ between ranks.
func vector(rank, n int) []int64 { return vectorFrom(rank, 0, n) }

// vectorFrom returns the n numbers of a rank's vector from number i on.
func vectorFrom(rank, i, n int) []int64 {
	v := make([]int64, n)
	for j := range v {
		v[j] = int64(1000*rank + i + j)
	}
	return v
}

// total returns the sum of the vectors of p ranks.
func total(p, n int) []int64 { return totalFrom(p, 0, n) }

// totalFrom returns the n numbers of the sum of the vectors of p ranks from number i on.
func totalFrom(p, i, n int) []int64 {
	v := make([]int64, n)
	for rank := range p {
		for j, x := range vectorFrom(rank, i, n) {
			v[j] += x
		}
	}
	return v
}

// transports are those that can connect ranks within this process.
var transports = func() []string {
	if runtime.GOOS != "linux" {
		return []string{"inproc", "tcp"}
	}
	return []string{"inproc", "tcp", "shm"}
}()

// onEachTransport runs f on p ranks, over one transport after the other.
func onEachTransport(t *testing.T, p int, f chorale.Func) {
	for _, name := range transports {
		t.Run(fmt.Sprintf("%s/p=%d", name, p), func(t *testing.T) { onTransport(t, name, p, f) })
	}
}

// errDies is what a rank returns that is lost for the others, and no failure of the test.
var errDies = errors.New("dies")

// onTransport runs f on p ranks over the named transport, in this process.
func onTransport(t interface {
	Helper()
	Fatal(...any)
}, name string, p int, f chorale.Func) {
	t.Helper()
	endpoints := make([]transport.Endpoint, p)
	switch name {
	case "inproc":
		job := inproc.New(p)
		for rank := range endpoints {
			endpoints[rank] = job.Endpoint(rank)
		}
	case "tcp":
		loop, err := tcp.Loopback(p)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range endpoints {
			endpoints[rank] = loop[rank]
		}
	case "shm":
		loop, err := shm.Loopback(p)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range endpoints {
			endpoints[rank] = loop[rank]
		}
	}
	var ranks sync.WaitGroup
	errs := make([]error, p)
	for rank, endpoint := range endpoints {
		ranks.Go(func() {
			c := chorale.NewComm(endpoint, chorale.CommConfig{Transport: name})
			if errs[rank] = f(context.Background(), c); errs[rank] != nil {
				chorale.Abort(c, errs[rank]) // so that the others end too
			}
		})
	}
	ranks.Wait()
	for rank, endpoint := range endpoints {
		if errors.Is(errs[rank], errDies) {
			errs[rank] = nil
			_ = endpoint.Close()
		} else if err := endpoint.Close(); err != nil && errs[rank] == nil {
			errs[rank] = err
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
