package algo

import "github.com/chorale-go/chorale/sched"

// A fold groups p ranks into a power of two of groups: the first ranks pair up
// with their neighbors, so that as many groups are left as the largest power of
// two that is not above p. A group is one rank or two. One of its ranks, the
// keeper, takes part in what follows on behalf of both.
//
// Pairs are neighbors, so aligned groups stand for a run of ranks, and
// combining group by group keeps rank order.
type fold struct {
	groups int // a power of two
	pairs  int // the first groups, made of two ranks each
	root   int // keeps its group; elsewhere the lower rank does
}

// foldRanks folds p ranks. The root is 0 if nothing depends on it.
func foldRanks(p, root int) fold {
	groups := 1 << floorLog(p)
	return fold{groups, p - groups, root}
}

// group returns the group of a rank.
func (f fold) group(rank int) int {
	if rank < 2*f.pairs {
		return rank / 2
	}
	return rank - f.pairs
}

// first returns the lower rank of a group; for the number of groups, it is p.
func (f fold) first(group int) int { return group + min(group, f.pairs) }

// paired reports whether a group has two ranks: r, and r XOR 1.
func (f fold) paired(group int) bool { return group < f.pairs }

// keeper returns the rank that takes part for its group.
func (f fold) keeper(group int) int {
	if f.group(f.root) == group {
		return f.root
	}
	return f.first(group)
}

// ranks returns the ranks of n groups that include a group. N is a power of
// two, and the first of the groups is a multiple of n.
func (f fold) ranks(group, n int) sched.Range {
	group &^= n - 1
	return sched.Range{Lo: f.first(group), Hi: f.first(group + n)}
}

// path returns the number of blocks that go over the longest path when aligned
// groups of 1, 2, 4, … exchange all their blocks: p−1 if nothing is folded.
func (f fold) path() (ranks float64) {
	for n := 1; n < f.groups; n *= 2 {
		ranks += float64(f.ranks(0, n).Len())
	}
	return ranks
}
