//go:build mpi

package mpi

import "github.com/chorale-go/chorale/transport/internal/match"

// The tags of MPI: all frames have one, and each piece of a long message that is on its
// way to a rank has one of its own. MPI guarantees tags up to 32767.
const (
	frameTag  = 1
	pieceTag  = 2
	piecesMax = 32 // pieces on their way to a rank
)

const (
	stepEager  = 16 << 10  // bytes of the longest message of a step that is eager
	pieceMax   = 32 << 20  // bytes of a piece that goes to where the message goes,
	combineMax = 256 << 10 // and of one that is combined
	frameMax   = (headerLen+textMax+alignment-1)/alignment*alignment + match.EagerMax
)
