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
