package sched

import (
	"errors"
	"testing"
)

func TestAnUnknownNameHasTheNearestKnownOne(t *testing.T) {
	known := []string{"linear", "ring", "recursive-doubling", "recursive-halving", "tree"}
	for name, want := range map[string]string{
		"rings": "ring", "Ring": "ring", "rign": "ring", "liner": "linear", "recursive-halfing": "recursive-halving",
		"fugue": "", "": "", "r": "", "recursive": "",
	} {
		if got := (&UnknownError{What: "algorithm", Name: name, Known: known}).Nearest(); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got, want := (&UnknownError{What: "algorithm", Name: "tee", Known: known}).Error(), `no algorithm "tee": want tree, or another of linear, ring, recursive-doubling, recursive-halving`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheOtherNamesOfACollectiveLeadToIt(t *testing.T) {
	for name, want := range map[string]Collective{
		"broadcast": Bcast, "Broadcast": Bcast, "MPI_Bcast": Bcast, "ibcast": Bcast, "alreduce": AllReduce,
		"all-reduce": AllReduce, "all_reduce": AllReduce, "AllReduce": AllReduce, "MPI_Allreduce": AllReduce, "ncclAllReduce": AllReduce, "global-sum": AllReduce,
		"prefix-sum": Scan, "prefix": Scan, "inclusive_scan": Scan, "ex-scan": ExScan, "exclusive-scan": ExScan,
		"all-to-all": AllToAll, "all-to-all-v": AllToAll, "AllToAllV": AllToAll, "total-exchange": AllToAll, "MPI_Allgatherv": AllGather,
		"reducescatter": ReduceScatter, "MPI_Reduce_scatter_block": ReduceScatter, "scatterv": Scatter,
		"reduction": Reduce, "sync": Barrier, "rotate": Shift,
	} {
		_, err := ParseCollective(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest() != want.String() {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	for _, name := range []string{"", "fugue", "i", "mpi", "v", "files.txt"} {
		_, err := ParseCollective(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest() != "" {
			t.Errorf("%q: %v", name, err)
		}
	}
	for synonym := range synonyms {
		if plainName(synonym) != synonym {
			t.Errorf("the synonym %q is never found: want %q", synonym, plainName(synonym))
		}
	}
}
