package main

import "github.com/chorale-go/chorale/topo"

// parseTopology makes the topology that spec names, for p processors.
func parseTopology(spec string, p int) (topo.Topology, error) {
	return topo.Parse(spec, p)
}
