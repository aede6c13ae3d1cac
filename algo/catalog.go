package algo

import (
	"fmt"
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// catalog is the only list of this package's algorithms; rows has those of the caller's,
// too. Each variable is defined in the file of
// the same name.
var catalog = []*Algorithm{
	&bcastLinear,
	&bcastBinomial,
	&bcastKnomial,
	&bcastChain,
	&bcastBinaryTree,
	&bcastSplitBinary,
	&bcastMesh,
	&bcastScatterAllgather,
	&bcastCirculant,
	&bcastRotated,
	&bcastHierarchical,

	&reduceLinear,
	&reduceBinomial,
	&reduceKnomial,
	&reduceTree,
	&reduceChain,
	&reduceBinaryTree,
	&reduceInOrderBinary,
	&reduceMesh,
	&reduceReduceScatterGather,
	&reduceCirculant,
	&reduceRotated,
	&reduceHierarchical,

	&scatterLinear,
	&scatterDirect,
	&scatterBinomial,
	&scatterMesh,
	&scatterRotated,
	&scatterHierarchical,

	&gatherLinear,
	&gatherDirect,
	&gatherBinomial,
	&gatherMesh,
	&gatherRotated,
	&gatherHierarchical,

	&allgatherLinear,
	&allgatherRing,
	&allgatherRecursiveDoubling,
	&allgatherCirculant,
	&allgatherBruck,
	&allgatherNeighborExchange,
	&allgatherDirect,
	&allgatherMesh,
	&allgatherRotated,
	&allgatherHierarchical,

	&reduceScatterPairwise,
	&reduceScatterRecursiveHalving,
	&reduceScatterRecursiveDoubling,
	&reduceScatterButterfly,
	&reduceScatterRing,
	&reduceScatterCirculant,
	&reduceScatterDirect,
	&reduceScatterMesh,
	&reduceScatterRotated,
	&reduceScatterHierarchical,

	&allreduceLinear,
	&allreduceTree,
	&allreduceButterfly,
	&allreduceRecursiveDoubling,
	&allreduceRecursiveMultiplying,
	&allreduceRecursiveHalving,
	&allreduceHalvingExchange,
	&allreduceRing,
	&allreduceReduceScatterAllgather,
	&allreduceCirculant,
	&allreduceDirect,
	&allreduceHierarchical,
	&allreduceSwing,

	&scanLinear,
	&scanRecursiveDoubling,

	&exscanLinear,
	&exscanRecursiveDoubling,

	&barrierLinear,
	&barrierDirect,
	&barrierTree,
	&barrierButterfly,
	&barrierDissemination,
	&barrierDoubleRing,
	&barrierHierarchical,

	&alltoallLinear,
	&alltoallPairwise,
	&alltoallRing,
	&alltoallMesh,
	&alltoallBruck,
	&alltoallHypercube,
	&alltoallEcube,
	&alltoallDirect,
	&alltoallRotated,

	&shiftDirect,
	&shiftRing,
	&shiftMesh,
}

// Catalog returns every algorithm, by collective.
func Catalog() []Algorithm {
	all := make([]Algorithm, 0, len(catalog))
	for _, a := range rows() {
		all = append(all, *a)
	}
	return all
}

// For returns the algorithms of one collective.
func For(c sched.Collective) []Algorithm {
	return slices.DeleteFunc(Catalog(), func(a Algorithm) bool { return a.Collective != c })
}

// Lookup returns the algorithm of the given name, which stands without parameters. Its
// error is a [*sched.UnknownError].
func Lookup(c sched.Collective, name string) (Algorithm, error) {
	if a := find(c, name); a != nil {
		return *a, nil
	}
	return Algorithm{}, fmt.Errorf("algo: %v: %w", c, unknown(c, name))
}

func find(c sched.Collective, name string) *Algorithm {
	for _, a := range rows() {
		if a.Collective == c && a.Name == name {
			return a
		}
	}
	return nil
}

// unknown is the error for a name that no algorithm of the collective has.
func unknown(c sched.Collective, name string) error {
	return &sched.UnknownError{What: "algorithm", Name: name, Known: names(c)}
}

// names returns those of the algorithms of a collective.
func names(c sched.Collective) (all []string) {
	for _, a := range rows() {
		if a.Collective == c {
			all = append(all, a.Name)
		}
	}
	return all
}
