package command

import (
	"fmt"
	"os"

	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/model"
)

// linkOf returns a transport whose messages take 1 µs, and 1 µs more for each 1000 bytes.
func linkOf(transport string) model.Link {
	return model.Link{Transport: transport, OneWay: model.Line(1, 1e-3), Exchange: model.Line(1, 1e-3)}
}

// machineProfile FILE ALGORITHM writes a profile of this machine by whose rules an allreduce of
// 100 bytes or less on 3 ranks takes the algorithm, over tcp and among goroutines.
func machineProfile() {
	p := model.Profile{Version: model.ProfileVersion, Node: model.Node{Processors: processors.Available(), Copy: model.Line(0, 1)}}
	p.Links = []model.Link{linkOf("inproc"), linkOf("tcp")}
	for transport, available := range map[string]int{"tcp": processors.Available(), "inproc": processors.Parallel()} {
		p.SetSelection(model.Selection{
			Version: model.SelectionVersion, Transport: transport, Processors: available,
			Rules: []model.Rule{{Collective: "allreduce", Ranks: 3, To: 100, Algorithm: os.Args[2], Bytes: 64, Time: 1, BuiltIn: "linear", BuiltInTime: 2}},
		})
	}
	err := writeProfile(os.Args[1], &p)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
