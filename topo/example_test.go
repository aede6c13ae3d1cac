package topo_test

import (
	"fmt"
	"log"

	"github.com/chorale-go/chorale/topo"
)

// The route of a message across a 4×4 mesh, last dimension first.
func ExampleParse() {
	mesh, err := topo.Parse("mesh:4x4", 16)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mesh.LinkCount(), "links, diameter", mesh.Diameter())
	for _, link := range topo.Route(mesh, 0, 14) {
		fmt.Print(topo.LinkName(mesh, link), " ")
	}
	fmt.Println()
	// Output:
	// 24 links, diameter 6
	// 0→1 1→2 2→6 6→10 10→14
}
