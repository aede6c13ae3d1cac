package chorale

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A rule takes the calls of one collective with at least so many ranks and
// bytes. Bytes are those of the whole vector; where it is one part per rank,
// those of a part.
type rule struct {
	collective   sched.Collective
	ranks, bytes int
	transport    string // "" for any
	algorithm    string
	why          string
}

// rules is the selection. Of the rules that fit a call, the last one whose
// algorithm takes the number of ranks, the operation and the parts is followed.
//
// Few steps win while messages are short, few bytes when they are long. Between
// goroutines, where a message is read from where it lies, whatever goes straight
// to its destination wins as well. The rules for inproc and tcp follow
// measurements with 2, 4 and 8 ranks on two processors, of November 2026, by
//
//	chorale bench OP -n 2,4,8 --transport inproc --algorithm all
//	chorale bench OP -n 2,4,8 --transport tcp --algorithm all
//
// Ranks over tcp that are more than 16 are taken to be on several machines, and
// their rules follow the literature.
var rules = []rule{
	{sched.Bcast, 0, 0, "", "binomial", "fewest steps"},
	{sched.Bcast, 3, 512 << 10, "inproc", "knomial", "readers share a source that is in cache"},
	{sched.Bcast, 17, 512 << 10, "tcp", "scatter-allgather", "no rank sends the vector twice"},

	{sched.Reduce, 0, 0, "", "binomial", "fewest steps"},
	{sched.Reduce, 3, 64 << 10, "", "reduce-scatter-gather", "all ranks share the combining"},
	{sched.Reduce, 0, 0, "tcp", "binomial", "every vector is combined as it comes in"},
	{sched.Reduce, 17, 64 << 10, "tcp", "reduce-scatter-gather", "all ranks share the combining"},
	{sched.Reduce, 0, 0, "shm", "binomial", "fewest steps"},
	{sched.Reduce, 3, 64 << 10, "shm", "reduce-scatter-gather", "all ranks share the combining"},

	{sched.Scatter, 0, 0, "", "binomial", "fewest steps"},
	{sched.Scatter, 0, 1 << 10, "inproc", "direct", "every part is copied once, by its receiver"},
	{sched.Scatter, 3, 16 << 10, "shm", "direct", "every part is copied once, by its receiver"},
	{sched.Scatter, 0, 1 << 10, "tcp", "linear", "every part is sent once"},
	{sched.Scatter, 17, 0, "tcp", "binomial", "fewest steps"},
	{sched.Gather, 0, 0, "", "binomial", "fewest steps"},
	{sched.Gather, 0, 1 << 10, "inproc", "direct", "every part is copied once, as it comes"},
	{sched.Gather, 3, 16 << 10, "shm", "direct", "every part is copied once, as it comes"},
	{sched.Gather, 0, 1 << 10, "tcp", "linear", "every part is sent once"},
	{sched.Gather, 17, 0, "tcp", "binomial", "fewest steps"},

	{sched.AllGather, 0, 0, "", "recursive-doubling", "fewest steps"},
	{sched.AllGather, 4, 64 << 10, "", "ring", "fewest bytes, between neighbours only"},
	{sched.AllGather, 0, 0, "shm", "direct", "written once, and read by all"},
	{sched.AllGather, 65, 0, "shm", "recursive-doubling", "fewest steps and peers"},
	{sched.AllGather, 65, 64 << 10, "shm", "ring", "fewest bytes and peers"},
	{sched.AllGather, 0, 0, "inproc", "direct", "every part is read where it lies"},
	{sched.AllGather, 65, 0, "inproc", "recursive-doubling", "fewest steps and peers"},
	{sched.AllGather, 65, 64 << 10, "inproc", "ring", "fewest bytes and peers"},

	{sched.ReduceScatter, 0, 0, "", "recursive-doubling", "fewest steps, for any operation"},
	{sched.ReduceScatter, 0, 0, "", "recursive-halving", "fewest steps and bytes"},
	{sched.ReduceScatter, 3, 0, "shm", "direct", "fewest waits"},
	{sched.ReduceScatter, 65, 0, "shm", "recursive-halving", "fewest steps and peers"},
	{sched.ReduceScatter, 0, 0, "inproc", "direct", "every part is read where it lies"},
	{sched.ReduceScatter, 65, 0, "inproc", "recursive-doubling", "fewest steps and peers, for any operation"},
	{sched.ReduceScatter, 65, 0, "inproc", "recursive-halving", "fewest steps and peers"},

	{sched.AllReduce, 0, 0, "", "recursive-doubling", "fewest steps"},
	{sched.AllReduce, 4, 16 << 10, "", "recursive-halving", "fewest bytes, and all ranks share the combining"},
	{sched.AllReduce, 2, 1 << 20, "shm", "recursive-halving", "fewest bytes, and all ranks share the combining"},
	{sched.AllReduce, 4, 16 << 10, "tcp", "recursive-doubling", "fewest steps"},
	{sched.AllReduce, 4, 64 << 10, "tcp", "recursive-halving", "fewest bytes, and all ranks share the combining"},

	{sched.AllToAll, 0, 0, "", "pairwise", "fewest bytes"},
	{sched.AllToAll, 4, 0, "tcp", "bruck", "fewest steps"},
	{sched.AllToAll, 4, 0, "tcp", "hypercube", "fewest steps, each with one peer"},
	{sched.AllToAll, 4, 8 << 10, "tcp", "pairwise", "fewest bytes"},
	{sched.AllToAll, 17, 256, "tcp", "pairwise", "fewest bytes"},
	{sched.AllToAll, 3, 0, "shm", "direct", "fewest waits"},
	{sched.AllToAll, 65, 0, "shm", "bruck", "fewest steps and peers"},
	{sched.AllToAll, 65, 256, "shm", "pairwise", "one peer at a time"},
	{sched.AllToAll, 0, 0, "inproc", "direct", "every part is read where it lies"},
	{sched.AllToAll, 65, 0, "inproc", "pairwise", "one peer at a time"},
	{sched.AllToAll, 65, 0, "inproc", "bruck", "fewest steps and peers"},
	{sched.AllToAll, 65, 256, "inproc", "pairwise", "one peer at a time"},

	{sched.Scan, 0, 0, "", "recursive-doubling", "fewest steps"},
	{sched.ExScan, 0, 0, "", "recursive-doubling", "fewest steps"},
	{sched.Barrier, 0, 0, "", "dissemination", "fewest steps"},
	{sched.Shift, 0, 0, "", "direct", "one step"},
}

// crowded are the rules, after all others, for ranks of one machine that
// outnumber its processors. They do not run at once anyway, so that what counts
// is the work of all together, and how often they have to wait. They were
// measured as the others; those for inproc with 32 and 128 ranks as well, those for tcp with 24.
var crowded = []rule{
	{sched.Bcast, 3, 0, "inproc", "linear", "fewest waits"},
	{sched.Bcast, 3, 2 << 10, "inproc", "knomial", "few waits, and readers share a source that is in cache"},

	{sched.Reduce, 3, 0, "inproc", "knomial", "few waits"},
	{sched.Reduce, 8, 8 << 10, "inproc", "binomial", "what comes in is in cache"},
	{sched.Reduce, 3, 64 << 10, "inproc", "knomial", "each vector is read once"},

	{sched.Scatter, 3, 0, "inproc", "direct", "fewest waits"},
	{sched.Gather, 3, 0, "inproc", "direct", "fewest waits"},

	{sched.AllReduce, 3, 0, "inproc", "direct", "fewest waits"},
	{sched.AllReduce, 8, 0, "inproc", "linear", "few waits and messages"},
	{sched.AllReduce, 3, 2 << 10, "inproc", "linear", "few waits and messages"},
	{sched.AllReduce, 32, 2 << 10, "inproc", "tree", "few waits and messages, and the combining is shared"},
	{sched.AllReduce, 3, 256 << 10, "inproc", "recursive-halving", "fewest bytes"},

	{sched.Barrier, 3, 0, "inproc", "direct", "fewest waits"},
	{sched.Barrier, 6, 0, "inproc", "linear", "few waits and messages"},

	{sched.Bcast, 3, 0, "shm", "linear", "fewest waits"},
	{sched.Bcast, 3, 16 << 10, "shm", "knomial", "several read what was written once"},

	{sched.Reduce, 3, 0, "shm", "knomial", "few waits"},
	{sched.Reduce, 8, 0, "shm", "linear", "fewest waits"},
	{sched.Reduce, 3, 4 << 10, "shm", "knomial", "few waits"},

	{sched.Scatter, 3, 0, "shm", "linear", "fewest waits, and every part is copied once"},
	{sched.Scatter, 3, 16 << 10, "shm", "direct", "every part is copied once, by its receiver"},
	{sched.Gather, 3, 0, "shm", "linear", "fewest waits, and every part is copied once"},
	{sched.Gather, 3, 16 << 10, "shm", "direct", "every part is copied once, as it comes"},

	{sched.AllReduce, 3, 0, "shm", "direct", "written once, and read by all"},
	{sched.AllReduce, 33, 0, "shm", "recursive-doubling", "fewest steps and peers"},
	{sched.AllReduce, 3, 16 << 10, "shm", "recursive-halving", "fewest bytes, and all ranks share the combining"},

	{sched.Barrier, 3, 0, "shm", "direct", "written once, and read by all"},
	{sched.Barrier, 12, 0, "shm", "linear", "few waits and messages"},

	{sched.Scatter, 3, 0, "tcp", "linear", "fewest waits, and every part is sent once"},
	{sched.Scatter, 17, 0, "tcp", "binomial", "fewest steps"},
	{sched.Scatter, 17, 64 << 10, "tcp", "linear", "every part is sent once"},
	{sched.Gather, 17, 64 << 10, "tcp", "linear", "every part is sent once"},

	{sched.AllGather, 4, 64 << 10, "tcp", "neighbor-exchange", "few waits, between neighbours only"},
	{sched.AllGather, 8, 0, "tcp", "linear", "few waits and messages"},
	{sched.AllGather, 8, 16 << 10, "tcp", "recursive-doubling", "few waits, and every part is sent once"},
	{sched.AllGather, 8, 64 << 10, "tcp", "neighbor-exchange", "few waits, between neighbours only"},
	{sched.AllGather, 8, 256 << 10, "tcp", "ring", "fewest bytes, between neighbours only"},

	{sched.AllReduce, 4, 0, "tcp", "hierarchical", "few waits and messages"},
	{sched.AllReduce, 4, 128 << 10, "tcp", "recursive-halving", "fewest bytes, and all ranks share the combining"},
	{sched.AllReduce, 8, 0, "tcp", "linear", "few waits and messages"},
	{sched.AllReduce, 8, 4 << 10, "tcp", "tree", "few waits and messages, and the combining is shared"},
	{sched.AllReduce, 8, 128 << 10, "tcp", "recursive-halving", "fewest bytes, and all ranks share the combining"},
	{sched.AllReduce, 8, 512 << 10, "tcp", "tree", "fewest waits"},
	{sched.AllReduce, 17, 0, "tcp", "tree", "few waits and messages, and the combining is shared"},
	{sched.AllReduce, 17, 64 << 10, "tcp", "recursive-halving", "fewest bytes, and all ranks share the combining"},

	{sched.Barrier, 3, 0, "tcp", "linear", "fewest waits and messages"},
}

// A Query is what the choice of an algorithm depends on.
type Query struct {
	Collective string // as in "allreduce"
	Ranks      int
	Bytes      int    // of the vector, or of a part where it is one part per rank
	Ordered    bool   // the operation does not commute
	Uneven     bool   // parts differ in length
	Transport  string // "inproc", "shm" or "tcp"
	Processors int    // that all ranks share; 0 if each has one, or that is unknown
}

// A Choice is an algorithm, and why it was chosen.
type Choice struct{ Algorithm, Why string }

// Choose returns the algorithm that a call takes if it names none. The
// environment variable CHORALE_ALGORITHM overrides the selection: it is a list
// like "allreduce=ring;bcast=chain,segment=8K", in which a name alone stands
// for every collective that has such an algorithm. Commas may separate entries
// too, where what follows is another "collective=name".
func Choose(q Query) (Choice, error) {
	c, err := sched.ParseCollective(q.Collective)
	if err != nil {
		return Choice{}, err
	}
	if spec, err := override(os.Getenv(environment), c); err != nil || spec != "" {
		return Choice{spec, environment + " says so"}, err
	}
	candidates := rules
	if 0 < q.Processors && q.Processors < q.Ranks {
		candidates = slices.Concat(rules, crowded)
	}
	var best rule
	for _, r := range candidates {
		if r.collective == c && q.Ranks >= r.ranks && q.Bytes >= r.bytes && cmp.Or(r.transport, q.Transport) == q.Transport && takes(r.algorithm, c, q) {
			best = r
		}
	}
	if best.algorithm == "" {
		return Choice{}, fmt.Errorf("no algorithm for %+v", q)
	}
	why := best.why
	limits := best.limits()
	if slices.Contains(crowded, best) {
		limits += ", more ranks than processors"
	}
	if limits != "" {
		why += " (a rule for " + limits + ")"
	}
	if q.Ordered {
		why += ", operands in rank order"
	}
	if q.Uneven {
		why += ", parts of different lengths"
	}
	return Choice{best.algorithm, why}, nil
}

// limits says which calls the rule is for, if not for all.
func (r rule) limits() string {
	var all []string
	if r.ranks > 0 {
		all = append(all, fmt.Sprintf("%d ranks or more", r.ranks))
	}
	if r.bytes > 0 {
		all = append(all, fmt.Sprintf("%d bytes or more", r.bytes))
	}
	if r.transport != "" {
		all = append(all, "transport "+r.transport)
	}
	return strings.Join(all, ", ")
}

// takes reports whether the algorithm can do the call.
func takes(name string, c sched.Collective, q Query) bool {
	for _, a := range algo.For(c) {
		if a.Name == name {
			return a.Restrictions.Allow(q.Ranks) == nil && !(q.Ordered && a.Restrictions.Commutative) && !(q.Uneven && a.Restrictions.EqualParts)
		}
	}
	return false
}

// environment names the variable that overrides the selection.
const environment = "CHORALE_ALGORITHM"

// override returns what the environment says of a collective, if anything.
func override(list string, c sched.Collective) (string, error) {
	found := ""
	for _, entry := range entries(list) {
		collective, spec, named := strings.Cut(entry, "=")
		if of, err := sched.ParseCollective(collective); named && err == nil {
			if of == c {
				found = spec
			}
			continue
		}
		base, _, _ := strings.Cut(entry, ",")
		if !slices.ContainsFunc(algo.Catalog(), func(a algo.Algorithm) bool { return a.Name == base }) {
			return "", fmt.Errorf("%s=%s: %q is neither COLLECTIVE=ALGORITHM nor an algorithm: %v has %s",
				environment, list, entry, c, strings.Join(Algorithms(c.String()), ", "))
		}
		if slices.Contains(Algorithms(c.String()), base) {
			found = entry
		}
	}
	return found, nil
}

// entries takes a list apart. A piece after a comma is a parameter of the entry
// before it unless it begins with the name of a collective.
func entries(list string) []string {
	var all []string
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' || r == ' ' }) {
		for i, piece := range strings.Split(part, ",") {
			key, _, named := strings.Cut(piece, "=")
			_, err := sched.ParseCollective(key)
			if i > 0 && named && err != nil {
				all[len(all)-1] += "," + piece
			} else if piece != "" {
				all = append(all, piece)
			}
		}
	}
	return all
}

// Schedule returns what a call would carry out: the schedule of a collective by
// an algorithm, which may have parameters, among p ranks. Bytes is the size of
// the whole vector, by which some algorithms choose parameters; 0 if it does not
// matter.
func Schedule(collective, algorithm string, p, root, bytes int) (*sched.Schedule, error) {
	c, err := sched.ParseCollective(collective)
	if err != nil {
		return nil, err
	}
	return algo.New(c, algorithm, p, root, bytes)
}

// Algorithms returns the names of the algorithms of a collective, as in
// "allreduce"; none if there is no such collective.
func Algorithms(collective string) []string {
	c, err := sched.ParseCollective(collective)
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range algo.For(c) {
		names = append(names, a.Name)
	}
	return names
}
