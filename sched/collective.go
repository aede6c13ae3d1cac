package sched

import (
	"fmt"
	"strings"
)

// A Collective is a kind of communication among all ranks: what each rank holds
// before, and what it must hold after. The constants have the meanings of MPI.
type Collective uint8

const (
	Bcast         Collective = iota // one-to-all broadcast: every Out is the root's In
	Reduce                          // all-to-one reduction: the root's Out is the combination of every In
	Scatter                         // one-to-all personalized: rank r's Out is part r of the root's In
	Gather                          // its dual: part r of the root's Out is rank r's In
	AllGather                       // all-to-all broadcast: part r of every Out is rank r's In
	ReduceScatter                   // all-to-all reduction: rank r's Out is part r of the combination of every In
	AllReduce                       // every Out is the combination of every In
	AllToAll                        // all-to-all personalized: part s of rank r's Out is part r of rank s's In
	Scan                            // prefix sums: rank r's Out is the combination of the In of ranks 0…r
	ExScan                          // the same without rank r's own In; rank 0's Out does not change
	Barrier                         // no data: no rank leaves before every rank has arrived
	Shift                           // circular shift: rank r's Out is the In of rank r-Root, counted modulo p
)

var collectives = [...]struct {
	name     string
	rooted   bool
	combines bool
	in, out  extent
}{
	Bcast:         {"bcast", true, false, onRoot, whole},
	Reduce:        {"reduce", true, true, whole, onRoot},
	Scatter:       {"scatter", true, false, onRoot, ownPart},
	Gather:        {"gather", true, false, ownPart, onRoot},
	AllGather:     {"allgather", false, false, ownPart, whole},
	ReduceScatter: {"reduce-scatter", false, true, whole, ownPart},
	AllReduce:     {"allreduce", false, true, whole, whole},
	AllToAll:      {"alltoall", false, false, whole, whole},
	Scan:          {"scan", false, true, whole, whole},
	ExScan:        {"exscan", false, true, whole, whole},
	Barrier:       {"barrier", false, false, nothing, nothing},
	Shift:         {"shift", false, false, whole, whole},
}

// extent says which blocks of a buffer a rank has.
type extent uint8

const (
	nothing extent = iota
	whole          // every block
	onRoot         // every block on the root, none elsewhere
	ownPart        // the blocks that belong to the rank
)

// Collectives returns every collective, in the order of the constants.
func Collectives() []Collective {
	all := make([]Collective, len(collectives))
	for i := range all {
		all[i] = Collective(i)
	}
	return all
}

// String returns the collective's name, as in "reduce-scatter".
func (c Collective) String() string {
	if int(c) < len(collectives) {
		return collectives[c].name
	}
	return fmt.Sprintf("Collective(%d)", uint8(c))
}

// ParseCollective is the inverse of [Collective.String]. Its error is an [*UnknownError],
// which knows other words and spellings for collectives.
func ParseCollective(name string) (Collective, error) {
	known := make([]string, len(collectives))
	for i := range collectives {
		if known[i] = collectives[i].name; known[i] == name {
			return Collective(i), nil
		}
	}
	unknown := &UnknownError{What: "collective", Name: name, Known: known}
	plain := plainName(name)
	for c := range collectives {
		if other, ok := synonyms[plain]; plain == plainName(known[c]) || ok && other == Collective(c) {
			unknown.Meant = known[c]
		}
	}
	return 0, unknown
}

// synonyms are other words for the collectives, as [plainName] writes them.
var synonyms = map[string]Collective{
	"broadcast":            Bcast,
	"onetoall":             Bcast,
	"reduction":            Reduce,
	"alltoone":             Reduce,
	"alltoallbroadcast":    AllGather,
	"gossip":               AllGather,
	"alltoallreduction":    ReduceScatter,
	"reducescatterblock":   ReduceScatter,
	"globalsum":            AllReduce,
	"sum":                  AllReduce,
	"alltoallpersonalized": AllToAll,
	"totalexchange":        AllToAll,
	"transpose":            AllToAll,
	"prefix":               Scan,
	"prefixsum":            Scan,
	"prefixsums":           Scan,
	"partialsums":          Scan,
	"inclusivescan":        Scan,
	"inscan":               Scan,
	"exclusivescan":        ExScan,
	"exclusiveprefix":      ExScan,
	"exclusiveprefixsum":   ExScan,
	"sync":                 Barrier,
	"synchronize":          Barrier,
	"cshift":               Shift,
	"circularshift":        Shift,
	"rotate":               Shift,
	"rotation":             Shift,
}

// plainName returns a name as it is compared where languages and libraries spell it
// differently: in lower case, without hyphens and the like, the prefix of a library, the i
// of a nonblocking call and the v of uneven parts, as in MPI_Ialltoallv.
func plainName(name string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	for _, library := range []string{"mpi", "nccl", "shmem"} {
		plain = strings.TrimPrefix(plain, library)
	}
	for _, c := range collectives {
		base := strings.ReplaceAll(c.name, "-", "")
		if plain == base+"v" || plain == "i"+base || plain == "i"+base+"v" {
			return base
		}
	}
	return plain
}

// Rooted reports whether one rank is the source or the destination of all data.
// Shift is not rooted, but uses Root as its distance.
func (c Collective) Rooted() bool { return collectives[c].rooted }

// Combines reports whether the collective takes an operator.
func (c Collective) Combines() bool { return collectives[c].combines }

// Extent returns the blocks of a buffer that a rank has: of In and Out as the
// collective says, of Scratch all.
func (s *Schedule) Extent(b Buffer, rank int) Range {
	var e extent
	switch b {
	case In:
		e = collectives[s.Collective].in
	case Out:
		e = collectives[s.Collective].out
	default:
		return Range{0, s.Scratch}
	}
	switch {
	case e == whole, e == onRoot && rank == s.Root:
		return Range{0, s.Blocks}
	case e == ownPart:
		return s.Part(rank)
	}
	return Range{}
}

// Part returns the blocks that belong to a rank in a vector of one part per
// rank.
func (s *Schedule) Part(rank int) Range {
	k := s.Blocks / s.P
	return Range{rank * k, (rank + 1) * k}
}

// Expected is the content of one block of a rank's Out at the end: block Block
// of the In of the ranks Lo ≤ r < Hi, combined in rank order. Lo == Hi means
// that the block does not change.
type Expected struct{ Block, Lo, Hi int }

// Expected returns what block b of rank's Out must hold at the end.
func (s *Schedule) Expected(rank, b int) Expected {
	one := func(block, from int) Expected { return Expected{block, from, from + 1} }
	owner := 0
	if s.Blocks > 0 {
		owner = b * s.P / s.Blocks
	}
	switch s.Collective {
	case Bcast, Scatter:
		return one(b, s.Root)
	case Gather, AllGather:
		return one(b, owner)
	case AllToAll:
		k := s.Blocks / s.P
		return one(rank*k+b%k, owner)
	case Scan:
		return Expected{b, 0, rank + 1}
	case ExScan:
		return Expected{b, 0, rank}
	case Shift:
		return one(b, ((rank-s.Root)%s.P+s.P)%s.P)
	}
	return Expected{b, 0, s.P}
}
