package chorale_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"sync/atomic"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
)

// A countingEndpoint is a transport of a program's own. It leaves moving bytes to
// another endpoint, and counts the messages of collectives.
type countingEndpoint struct {
	transport.Endpoint
	messages *atomic.Int64
}

func (e countingEndpoint) Exchange(ctx context.Context, step transport.Step) error {
	for _, send := range step.Sends {
		e.messages.Add(int64(len(send.To)))
	}
	return e.Endpoint.Exchange(ctx, step)
}

// A program that brings its own transport makes one endpoint per rank, and a
// communicator over each.
func ExampleNewComm() {
	const size = 4
	var messages atomic.Int64
	job := inproc.New(size)

	var ranks sync.WaitGroup
	for rank := range size {
		ranks.Go(func() {
			endpoint := countingEndpoint{job.Endpoint(rank), &messages}
			c := chorale.NewComm(endpoint, chorale.CommConfig{})
			defer c.Close()
			sum := []int{c.Rank()}
			if err := chorale.AllReduce(context.Background(), c, sum, sum, chorale.Sum, chorale.WithAlgorithm("ring")); err != nil {
				log.Fatal(err)
			}
			if c.Rank() == 0 {
				fmt.Println("sum", sum[0])
			}
		})
	}
	ranks.Wait()
	fmt.Println(messages.Load(), "messages: each of the 4 ranks sent 2·(4−1)")
	// Output:
	// sum 6
	// 24 messages: each of the 4 ranks sent 2·(4−1)
}

// Six ranks on two hosts, four on the one and two on the other. The ranks of a host add
// up their numbers.
func ExampleComm_SplitHost() {
	hosts := []int{0, 0, 0, 0, 1, 1} // a launcher knows them
	job := inproc.New(len(hosts))

	var ranks sync.WaitGroup
	sums := make([]int, len(hosts))
	for rank := range hosts {
		ranks.Go(func() {
			c := chorale.NewComm(job.Endpoint(rank), chorale.CommConfig{Hosts: hosts})
			defer c.Close()
			host, err := c.SplitHost(context.Background())
			if err != nil {
				log.Fatal(err)
			}
			mine := []int{c.Rank()}
			if err := chorale.AllReduce(context.Background(), host, sums[rank:rank+1], mine, chorale.Sum); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	fmt.Println(sums)
	// Output:
	// [6 6 6 6 9 9]
}
