package algo_test

import (
	"fmt"
	"log"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// The binomial broadcast among 8 ranks from root 0.
func ExampleNew() {
	s, err := algo.New(sched.Bcast, "binomial", 8, 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	timeline, err := s.Timeline()
	if err != nil {
		log.Fatal(err)
	}
	for step := range timeline.Steps() {
		fmt.Print("step ", step+1, ":")
		for _, m := range timeline.Messages(step) {
			fmt.Printf(" %d→%d", m.From, m.To)
		}
		fmt.Println()
	}
	// Output:
	// step 1: 0→4
	// step 2: 0→2 4→6
	// step 3: 0→1 2→3 4→5 6→7
}

// An algorithm outside its restrictions is an error, which names them.
func ExampleNew_restriction() {
	_, err := algo.New(sched.AllToAll, "hypercube", 6, 0, 0)
	fmt.Println(err)
	// Output:
	// algo: alltoall "hypercube" on 6 ranks: hypercube needs a power of two of ranks, want 4 or 8
}

// The best broadcast of 1 MiB in words of 8 bytes among 64 ranks.
func ExampleCheapest() {
	choice, err := algo.Cheapest(sched.Bcast, 64, 0, 128<<10, 1<<20, model.Default(), algo.Constraints{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(choice.Spec)
	fmt.Println(model.Default().Time(choice.Cost))
	// Output:
	// circulant,blocks=256
	// 136242
}

// A broadcast of the caller's own, in which the root tells every rank in turn, from the
// last to the first.
func ExampleRegister() {
	err := algo.Register(algo.Definition{
		Algorithm: algo.Algorithm{
			Collective: sched.Bcast,
			Name:       "backwards",
			Formula:    "(p − 1)(α + nβ)",
			Prefer:     "demonstrations",
		},
		Cost: func(c algo.Call, n float64) model.Cost {
			p := float64(c.Ranks())
			return model.Cost{Startups: p - 1, Words: (p - 1) * n}
		},
		Build: func(c algo.Call) algo.Programs {
			vector := sched.Range{Lo: 0, Hi: 1}
			return algo.Programs{Blocks: 1, Program: func(b *sched.Builder, rank int) {
				if rank != c.Root() {
					b.Recv(c.Root(), sched.Out, vector, sched.Replace)
					b.EndStep()
					return
				}
				b.Copy(sched.In, vector, sched.Out, 0, sched.Replace)
				for to := c.Ranks() - 1; to >= 0; to-- {
					if to != rank {
						b.Send(sched.In, vector, to)
						b.EndStep()
					}
				}
			}}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := algo.New(sched.Bcast, "backwards", 4, 1, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Check())
	names := algo.For(sched.Bcast)
	fmt.Println(names[len(names)-1].Name)
	// Output:
	// <nil>
	// backwards
}
