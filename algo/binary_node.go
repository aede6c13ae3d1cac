package algo

import "github.com/chorale-go/chorale/sched"

// A node is a rank of a binary tree, by its relatives: the ranks above and
// below it, or -1 where there is none.
type node struct{ parent, left, right int }

// heapNode returns the node of a rank in the tree where position v, counted from
// the root, has the children 2v+1 and 2v+2.
func heapNode(p, root, rank int) node {
	at := func(position int) int {
		if position >= p {
			return -1
		}
		return (position + root) % p
	}
	position := (rank - root + p) % p
	n := node{-1, at(2*position + 1), at(2*position + 2)}
	if position > 0 {
		n.parent = at((position - 1) / 2)
	}
	return n
}

// pipeDown hands the pieces of a range down a binary tree, from Out to Out. A
// rank sends a piece to the left, then to the right, and takes the next piece
// while it sends to the right.
func (n node) pipeDown(b *sched.Builder, pieces sched.Range) {
	recv := func(piece int) {
		if n.parent >= 0 && piece < pieces.Hi {
			b.Recv(n.parent, sched.Out, one(piece), sched.Replace)
		}
	}
	send := func(piece, to int) {
		if to >= 0 {
			b.Send(sched.Out, one(piece), to)
		}
	}
	recv(pieces.Lo)
	b.EndStep()
	for piece := pieces.Lo; piece < pieces.Hi; piece++ {
		send(piece, n.left)
		b.EndStep()
		send(piece, n.right)
		recv(piece + 1)
		b.EndStep()
	}
}

// pipeUp is pipeDown reversed. It combines the pieces of every In of a tree in
// kept: those of the left subtree, then the rank's own, then those of the right
// subtree. A rank sends up a piece while the next comes from the right.
func (n node) pipeUp(b *sched.Builder, pieces int, kept sched.Buffer) {
	held, how, first := sched.In, sched.Right, n.right
	if first < 0 {
		how, first = sched.Left, n.left
	}
	switch {
	case first >= 0:
		held = kept
	case n.parent < 0: // alone
		b.Copy(held, whole(pieces), kept, 0, sched.Replace)
	}
	for piece := range pieces + 1 {
		if first >= 0 && piece < pieces {
			recvCombine(b, sched.In, kept, one(piece), first, how)
		}
		if n.parent >= 0 && piece > 0 {
			b.Send(held, one(piece-1), n.parent)
		}
		b.EndStep()
		if first != n.left && n.left >= 0 && piece < pieces {
			b.Recv(n.left, kept, one(piece), sched.Left)
			b.EndStep()
		}
	}
}

// heapSteps returns the number of steps that the pieces take from the top of a
// tree of p positions to its last. A position is reached one step after its
// parent if it is the left child, two if the right. So the last position to be
// reached is the one on the deepest or the next deepest level with most right
// turns on its path.
func heapSteps(p, pieces int) int {
	switch {
	case p == 1:
		return 0
	case p == 2:
		return pieces
	}
	depth := floorLog(p)
	onLast := p - 1<<depth // positions on the deepest level, less one
	first := max(depth+floorLog(onLast+1), 2*(depth-1))
	return first + 2*(pieces-1)
}

// heapFill returns the number of pieces that follow each other on the path of
// the first.
func heapFill(p int) float64 { return float64(heapSteps(p, 1)-2) / 2 }
