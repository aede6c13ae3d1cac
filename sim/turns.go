package sim

// A turn is the index of a message among those of its sender's step, and below
// it the message: of several messages, the one with the least turn queues first.
type turn uint64

const indexShift = 32

func newTurn(index, message int32) turn { return turn(index)<<indexShift | turn(message) }

func (t turn) message() int32 { return int32(uint32(t)) }
