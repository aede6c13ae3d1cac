package chorale_test

import (
	"context"
	"fmt"
	"log"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// run runs f on n ranks, and ends the program if it fails.
func run(n int, f chorale.Func) {
	if err := chorale.Run(context.Background(), n, f); err != nil {
		log.Fatal(err)
	}
}

// Four ranks, each a goroutine, add up their numbers. Rank 0 gets the sum.
func ExampleRun() {
	err := chorale.Run(context.Background(), 4, func(ctx context.Context, c *chorale.Comm) error {
		sum := []int{c.Rank()}
		if err := chorale.Reduce(ctx, c, sum, sum, chorale.Sum, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("the sum of the ranks of %d is %d\n", c.Size(), sum[0])
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: the sum of the ranks of 4 is 6
}

// Every rank gets the elementwise maximum of all vectors. Dst may be src.
func ExampleAllReduce() {
	run(3, func(ctx context.Context, c *chorale.Comm) error {
		src := []float64{float64(c.Rank()), float64(-c.Rank()), 0.5}
		dst := make([]float64, len(src))
		if err := chorale.AllReduce(ctx, c, dst, src, chorale.Max); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(dst)
		}
		return nil
	})
	// Output: [2 0 0.5]
}

// The operation may be a function of the caller's own. Composition of affine maps
// does not commute, so operands are combined in the order of the ranks.
func ExampleAllReduceFunc() {
	type affine struct{ A, B int } // x ↦ A·x + B
	then := chorale.Op[affine]{Combine: func(f, g affine) affine {
		return affine{g.A * f.A, g.A*f.B + g.B}
	}}
	run(3, func(ctx context.Context, c *chorale.Comm) error {
		maps := []affine{{2, c.Rank()}} // x ↦ 2x, then 2x+1, then 2x+2
		if err := chorale.AllReduceFunc(ctx, c, maps, maps, then); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Printf("x ↦ %d·x + %d\n", maps[0].A, maps[0].B)
		}
		return nil
	})
	// Output: x ↦ 8·x + 4
}

// Rank r gets counts[r] elements. Only the root needs src.
func ExampleScatterV() {
	counts := []int{1, 3, 2}
	received := make([][]int, len(counts)) // by rank
	run(len(counts), func(ctx context.Context, c *chorale.Comm) error {
		var src []int
		if c.Rank() == 0 {
			src = []int{10, 20, 21, 22, 30, 31}
		}
		dst := make([]int, counts[c.Rank()])
		if err := chorale.ScatterV(ctx, c, dst, src, counts, 0); err != nil {
			return err
		}
		received[c.Rank()] = dst
		return nil
	})
	for rank, part := range received {
		fmt.Println("rank", rank, "has", part)
	}
	// Output:
	// rank 0 has [10]
	// rank 1 has [20 21 22]
	// rank 2 has [30 31]
}

// Even and odd ranks get a communicator each. Keys order the ranks in it: here in
// reverse.
func ExampleComm_Split() {
	lines := make([]string, 5) // by rank
	run(len(lines), func(ctx context.Context, c *chorale.Comm) error {
		half, err := c.Split(ctx, c.Rank()%2, -c.Rank())
		if err != nil {
			return err
		}
		defer half.Free()
		sum := []int{c.Rank()}
		if err := chorale.AllReduce(ctx, half, sum, sum, chorale.Sum); err != nil {
			return err
		}
		lines[c.Rank()] = fmt.Sprintf("rank %d is rank %d of %d, sum %d", c.Rank(), half.Rank(), half.Size(), sum[0])
		return nil
	})
	for _, line := range lines {
		fmt.Println(line)
	}
	// Output:
	// rank 0 is rank 2 of 3, sum 6
	// rank 1 is rank 1 of 2, sum 4
	// rank 2 is rank 1 of 3, sum 6
	// rank 3 is rank 0 of 2, sum 4
	// rank 4 is rank 0 of 3, sum 6
}

// Six ranks form two rows of three. Columns end at the edge, and rows are rings.
func ExampleComm_Grid() {
	run(6, func(ctx context.Context, c *chorale.Comm) error {
		g, err := c.Grid(ctx, []int{2, 3}, []bool{false, true})
		if err != nil {
			return err
		}
		row, err := g.Line(ctx, 1)
		if err != nil {
			return err
		}
		sum := []int{g.Rank()}
		if err := chorale.AllReduce(ctx, row, sum, sum, chorale.Sum); err != nil {
			return err
		}
		if g.Rank() == 5 {
			right, _ := g.Neighbor(1, 1)
			_, below := g.Neighbor(0, 1)
			fmt.Println("rank 5 is at", g.Coordinates(5))
			fmt.Println("the rank to the right is", right)
			fmt.Println("there is a rank below:", below)
			fmt.Println("the sum of the row is", sum[0])
		}
		return nil
	})
	// Output:
	// rank 5 is at [1 2]
	// the rank to the right is 3
	// there is a rank below: false
	// the sum of the row is 12
}

// A nonblocking call runs while the rank computes. Its buffers belong to the call
// until Wait returns.
func ExampleStart() {
	run(2, func(ctx context.Context, c *chorale.Comm) error {
		sum := []int{c.Rank() + 1}
		request := chorale.Start(ctx, c, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, sum, sum, chorale.Sum)
		})
		squares := 0
		for i := range 10 {
			squares += i * i
		}
		if err := request.Wait(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("computed", squares, "and received", sum[0])
		}
		return nil
	})
	// Output: computed 285 and received 3
}

// A prepared call is started once per iteration, with the same buffers each time.
func ExamplePrepare() {
	run(2, func(ctx context.Context, c *chorale.Comm) error {
		x := []int{c.Rank() + 1}
		double, err := chorale.Prepare(c, func(ctx context.Context, c *chorale.Comm) error {
			return chorale.AllReduce(ctx, c, x, x, chorale.Sum)
		})
		if err != nil {
			return err
		}
		defer double.Free()
		for range 4 {
			double.Start(ctx)
			if err := double.Wait(); err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println(x[0])
			}
		}
		return nil
	})
	// Output:
	// 3
	// 6
	// 12
	// 24
}

// Rank 1 receives what ranks 0 and 2 sent, one after the other.
func ExampleSend() {
	const tag = 7
	run(3, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() != 1 {
			return chorale.Send(ctx, c, []int{c.Rank(), 10 * c.Rank()}, 1, tag)
		}
		for range c.Size() - 1 {
			dst := make([]int, 8)
			status, err := chorale.Recv(ctx, c, dst, chorale.RoundRobin, tag)
			if err != nil {
				return err
			}
			fmt.Println("from rank", status.From, dst[:status.Count])
		}
		return nil
	})
	// Output:
	// from rank 0 [0 0]
	// from rank 2 [2 20]
}

// Probe finds the length of a message before it is received.
func ExampleRecv() {
	run(2, func(ctx context.Context, c *chorale.Comm) error {
		if c.Rank() == 0 {
			return chorale.Send(ctx, c, []float64{1.5, 2.5, 3.5}, 1, 0)
		}
		status, err := chorale.Probe[float64](ctx, c, chorale.AnyRank, 0)
		if err != nil {
			return err
		}
		dst := make([]float64, status.Count)
		if _, err := chorale.Recv(ctx, c, dst, status.From, status.Tag); err != nil {
			return err
		}
		fmt.Println(dst)
		return nil
	})
	// Output: [1.5 2.5 3.5]
}

// The gradients lie in memory that all ranks of the host share: a rank sums up those of
// another one where they are.
func ExampleAlloc() {
	run(4, func(ctx context.Context, c *chorale.Comm) error {
		gradients, err := chorale.Alloc[float32](c, 1<<20)
		if err != nil {
			return err
		}
		for range 3 {
			for i := range gradients {
				gradients[i] = float32(c.Rank())
			}
			if err := chorale.AllReduce(ctx, c, gradients, gradients, chorale.Sum); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Println(gradients[:3])
		}
		return chorale.Free(c, gradients)
	})
	// Output: [6 6 6]
}

// A table that every rank fills a part of, and all ranks read.
func ExampleNewWindow() {
	run(3, func(ctx context.Context, c *chorale.Comm) error {
		w, err := chorale.NewWindow[int](ctx, c, 2)
		if err != nil {
			return err
		}
		part := w.Local(c.Rank())
		part[0], part[1] = c.Rank(), 10*c.Rank()
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(w.Local(0), w.Local(1), w.Local(2))
		}
		return w.Free(ctx)
	})
	// Output: [0 0] [1 10] [2 20]
}

// A schedule written by hand is checked and then executed: here, rank 1 gets the
// vector of rank 0 and forwards it to rank 2.
func ExampleWithSchedule() {
	relay, err := sched.ParseText([]byte(`
schedule bcast relay
ranks 3
rank 0
  step
    copy in 0..1 to out 0
    send in 0..1 to 1
rank 1
  step
    recv out 0..1 from 0
  step
    send out 0..1 to 2
rank 2
  step
    recv out 0..1 from 1
`))
	if err != nil {
		log.Fatal(err)
	}
	run(3, func(ctx context.Context, c *chorale.Comm) error {
		buf := make([]int32, 2)
		if c.Rank() == 0 {
			buf = []int32{4, 2}
		}
		var stats chorale.Stats
		if err := chorale.Bcast(ctx, c, buf, 0, chorale.WithSchedule(relay), chorale.WithStats(&stats)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(buf)
			fmt.Printf("%s: %d steps, %d message of %d bytes\n", stats.Algorithm, stats.Steps, stats.Messages, stats.Bytes)
		}
		return nil
	})
	// Output:
	// [4 2]
	// relay: 2 steps, 1 message of 8 bytes
}
