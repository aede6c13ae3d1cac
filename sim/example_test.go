package sim_test

import (
	"fmt"
	"log"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// On a ring of 8 processors, the farthest-first broadcast of 1024 words takes
// 3 (ts + 1024 tw). Nearest first, its messages wait for each other.
func ExampleRun() {
	ring, err := topo.NewRing(8)
	if err != nil {
		log.Fatal(err)
	}
	config := sim.Config{Topology: ring, Model: model.Model{Ts: 10, Tw: 1}}
	for _, spec := range []string{"binomial", "binomial,order=ascending"} {
		s, err := algo.New(sched.Bcast, spec, 8, 0, 0)
		if err != nil {
			log.Fatal(err)
		}
		r, err := sim.Run(config, sim.Part{Schedule: s, Words: 1024})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: time %v\n", spec, r.Time)
		for _, leg := range r.Path {
			fmt.Printf("  %d→%d from %v to %v", leg.From, leg.To, leg.Start, leg.End)
			if leg.WaitedFor != "" {
				fmt.Printf(", after it waited %v for %s", leg.Waited, leg.WaitedFor)
			}
			fmt.Println()
		}
	}
	// Output:
	// binomial: time 3102
	//   0→4 from 0 to 1034
	//   0→2 from 1034 to 2068
	//   0→1 from 2068 to 3102
	// binomial,order=ascending: time 7238
	//   0→1 from 0 to 1034
	//   0→2 from 1034 to 2068
	//   1→3 from 2068 to 3102, after it waited 1034 for link 1→2
	//   0→4 from 3102 to 4136, after it waited 1034 for link 2→3
	//   2→6 from 4136 to 5170, after it waited 2068 for link 3→4
	//   1→5 from 5170 to 6204, after it waited 2068 for link 4→5
	//   3→7 from 6204 to 7238, after it waited 3102 for link 4→5
}
