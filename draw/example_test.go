package draw_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A binomial broadcast among four ranks on a linear array, simulated and drawn.
func Example() {
	schedule, err := algo.New(sched.Bcast, "binomial", 4, 0, 0)
	if err != nil {
		log.Fatal(err)
	}
	network, err := topo.NewLinear(4)
	if err != nil {
		log.Fatal(err)
	}
	parts := []sim.Part{{Schedule: schedule, Words: 64}}
	result, err := sim.Run(sim.Config{Topology: network, Model: model.Default(), Record: true}, parts...)
	if err != nil {
		log.Fatal(err)
	}

	var svg bytes.Buffer
	scene := draw.Scene{Title: "A broadcast", Parts: parts, Result: result}
	if err := draw.Network(&svg, scene, draw.NetworkOptions{}); err != nil {
		log.Fatal(err)
	}
	_, description, _ := strings.Cut(svg.String(), `<desc id="network-desc">`)
	description, _, _ = strings.Cut(description, "</desc>")
	fmt.Println(description)
	fmt.Println(strings.Count(svg.String(), `class="arrow"`), "arrows")
	// Output:
	// linear, 4 ranks, 2 steps, 3 messages. Step 1: 0→2. Step 2: 0→1, 2→3.
	// 3 arrows
}
