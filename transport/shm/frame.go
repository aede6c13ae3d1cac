package shm

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/transport/internal/match"
	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A frameKind says what a frame is.
type frameKind uint8

const (
	// Messages of steps. The first five begin a message.
	inlineFrame     frameKind = 1 + iota // inline: a whole message, in the cell
	stagedFrame                          // staged: the first chunk, in a staging buffer
	rendezvousFrame                      // rendezvous: a message in its sender's memory
	multicastFrame                       // inline: a whole message to several ranks, in a multicast cell
	pairFrame                            // inline: a whole message, in a pair cell
	chunkFrame                           // staged: a further chunk, in a staging buffer
	remainderFrame                       // rendezvous: what remains of a staged message, in its sender's memory
	abandonFrame                         // no more comes of a message that has begun: its communicator is revoked

	// Tagged messages.
	eagerFrame       // a whole message with its type, in the cell
	eagerStagedFrame // the same, in a staging buffer
	eagerPairFrame   // the same, in a pair cell
	rtsFrame         // ready to send: announces a rendezvous message, and may offer it; its type is in the cell
	rtsStagedFrame   // the same; its type is in a staging buffer
	withdrawFrame    // the announced message is withdrawn
	ctsFrame         // clear to send: the receiver asks for the contents
	fragmentFrame    // contents of a rendezvous message, in a staging buffer
	creditFrame      // returns credits
	addressFrame     // where the contents of a rendezvous message are, in the memory of its sender
	placeFrame       // the same, in the arena of its sender
	readFrame        // the receiver has read them there
	pullFrame        // asks for a rendezvous message of a step that has no place
)

// stagedKind returns the kind of a frame of a tagged message whose contents are in a
// staging buffer.
func stagedKind(k frameKind) frameKind {
	if k == rtsFrame {
		return rtsStagedFrame
	}
	return eagerStagedFrame
}

// isEager reports whether a frame of this kind is an eager message.
func (k frameKind) isEager() bool { return eagerFrame <= k && k <= eagerPairFrame }

// beginsMessage reports whether a frame of this kind begins a message of a step.
func (k frameKind) beginsMessage() bool { return k <= pairFrame }

const (
	lineLen = 64 // bytes of a cache line, which travels between cores as a whole

	// inlineMax is how many bytes travel in one cache line with their header.
	inlineMax = 40
	// multicastMax is the same for a multicast frame, which also holds its readers.
	multicastMax = inlineMax - 16
	// rtsTypeMax is how long the type of a message may be that is in an rtsFrame.
	rtsTypeMax = inlineMax - 28
)

// A cell is one cache line with one frame. Sequence says which frame is there, and
// of what kind. It is written last: ordering.go tells how.
type cell struct {
	sequence atomic.Uint32
	header   [20]byte // a stepHeader or a taggedHeader
	body     [inlineMax]byte
}

// A stepHeader is the match header of a message of a step. Every frame that begins one
// has all of it. A chunkFrame has the field size alone.
type stepHeader struct {
	size       uint32 // bytes in the cell or in the staging buffer
	context    uint32
	sequence   uint32 // of the call
	hash       uint32 // of the call's text
	multicasts uint32 // the multicast frames of the sender before this frame, modulo 2^32
}

// A taggedHeader is the header of a tagged message, or of its announcement.
type taggedHeader struct {
	size    uint32 // bytes in the cell or in the staging buffer: the type, then the contents
	context uint32
	typeLen uint32 // bytes of the type
	tag     [2]uint32
}

// Payload descriptors are the bodies of all frames but inlineFrame and eagerFrame.

// A stagedPayload is the body of a stagedFrame and of a chunkFrame.
type stagedPayload struct {
	total  uint64 // bytes of the whole message
	offset uint64 // of the chunk in the message
	buffer uint32 // the staging buffer of the sender
	first  uint32 // the number of the frame that the message began with
}

// A remotePayload is the body of a rendezvousFrame and of a remainderFrame.
type remotePayload struct {
	total   uint64 // bytes of the whole message
	offset  uint64 // from where on it is in the sender's memory
	address uint64 // of the whole message there
	first   uint32 // the number of the frame that the message began with
	place   uint32 // of the receiver's reply, or noPlace
	shared  uint32 // 1: address is in the sender's arena, from its beginning
	_       uint32
}

// A multicastPayload is the body of a multicastFrame. Ranks that are not among the
// readers read the first two words too: ordering.go tells how.
type multicastPayload struct {
	readers atomic.Uint64 // a bit for each rank
	number  atomic.Uint64 // of the frame among the multicast frames of its sender
	data    [multicastMax]byte
}

// A pairPayload is the body of a pairFrame. It is longer than a cell is elsewhere.
type pairPayload struct {
	after uint32 // the number of the last frame in the ring of the sender before this frame
	_     uint32
	data  [pairDataMax]byte
}

// An rtsPayload is the body of an rtsFrame and of an rtsStagedFrame.
type rtsPayload struct {
	total    uint64           // bytes of the message
	offer    offer            // 0: the receiver has to ask for the message
	address  uint64           // of the message that is offered
	number   uint32           // of the message among the rendezvous messages of its sender
	typeName [rtsTypeMax]byte // of an rtsFrame; of an rtsStagedFrame, the staging buffer
}

// buffer is the number of the staging buffer of an rtsStagedFrame.
func (p *rtsPayload) buffer() *uint32 { return (*uint32)(unsafe.Pointer(&p.typeName)) }

// A fragmentPayload is the body of a fragmentFrame, of an eagerStagedFrame, and of
// the frames without contents.
type fragmentPayload struct {
	offset uint64 // of a fragment in the message; of a creditFrame, the credits; of an addressFrame, the address
	number uint32 // of the message among the rendezvous messages of its sender; of an abandonFrame, the number of the frame that it began with
	buffer uint32
}

// The layout is what processes agree on.
var (
	_ [lineLen]byte   = [unsafe.Sizeof(cell{})]byte{}
	_ [20]byte        = [unsafe.Sizeof(stepHeader{})]byte{}
	_ [20]byte        = [unsafe.Sizeof(taggedHeader{})]byte{}
	_ [24]byte        = [unsafe.Sizeof(stagedPayload{})]byte{}
	_ [inlineMax]byte = [unsafe.Sizeof(remotePayload{})]byte{}
	_ [inlineMax]byte = [unsafe.Sizeof(multicastPayload{})]byte{}
	_ [inlineMax]byte = [unsafe.Sizeof(rtsPayload{})]byte{}
	_ [16]byte        = [unsafe.Sizeof(fragmentPayload{})]byte{}
)

func (c *cell) step() *stepHeader          { return (*stepHeader)(unsafe.Pointer(&c.header)) }
func (c *cell) tagged() *taggedHeader      { return (*taggedHeader)(unsafe.Pointer(&c.header)) }
func (c *cell) staged() *stagedPayload     { return (*stagedPayload)(unsafe.Pointer(&c.body)) }
func (c *cell) remote() *remotePayload     { return (*remotePayload)(unsafe.Pointer(&c.body)) }
func (c *cell) fragment() *fragmentPayload { return (*fragmentPayload)(unsafe.Pointer(&c.body)) }
func (c *cell) rts() *rtsPayload           { return (*rtsPayload)(unsafe.Pointer(&c.body)) }
func (c *cell) pair() *pairPayload         { return (*pairPayload)(unsafe.Pointer(&c.body)) }
func (c *cell) multicast() *multicastPayload {
	return (*multicastPayload)(unsafe.Pointer(&c.body))
}

func (h *taggedHeader) tagValue() int {
	return int(uint64(h.tag[0]) | uint64(h.tag[1])<<32)
}

// The writers fill a cell. Then the sender publishes it.

// setStep writes the match header of a message of a step.
func (c *cell) setStep(size int, call *match.Call, multicasts uint64) {
	h := c.step()
	h.size = uint32(size)
	h.context, h.sequence, h.hash = call.Context, call.Sequence, call.Hash
	h.multicasts = uint32(multicasts)
}

func (c *cell) setInline(message []byte) { copy(c.body[:], message) }

func (c *cell) setMulticast(message []byte) { copy(c.multicast().data[:], message) }

// setPair fills the body of a pair cell, which has room for pairDataMax bytes, with a message and,
// if it is a tagged one, the text of its type before it.
func (c *cell) setPair(after uint32, message []byte, typeName string) {
	p := c.pair()
	p.after = after
	copy(p.data[copy(p.data[:], typeName):], message)
}

func (c *cell) setStaged(size, total, offset, buffer int, first uint32) {
	c.step().size = uint32(size)
	*c.staged() = stagedPayload{total: uint64(total), offset: uint64(offset), buffer: uint32(buffer), first: first}
}

// setRemote writes where a message is: at an address of the sender, or a place in its arena.
func (c *cell) setRemote(message []byte, offset int, first, place uint32, arenaPlace int, shared bool) {
	c.step().size = 0
	p := c.remote()
	*p = remotePayload{
		total: uint64(len(message)), offset: uint64(offset), first: first, place: place,
		address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(message)))),
	}
	if shared {
		p.address, p.shared = uint64(arenaPlace), 1
	}
}

func (c *cell) setTagged(size int, context uint32, tag int, typeLen int) {
	h := c.tagged() // field by field: a composite literal would be built elsewhere and copied
	h.size, h.context, h.typeLen = uint32(size), context, uint32(typeLen)
	h.tag[0], h.tag[1] = uint32(tag), uint32(uint64(tag)>>32)
}

// setEager fills the body with an eager message, for which it has room.
func (c *cell) setEager(typeName string, message []byte) {
	copy(c.body[copy(c.body[:], typeName):], message)
}

// inArena is set in the address of an offer if that is in the arena of its sender, from its
// beginning.
const inArena = 1 << 63

func (c *cell) setRTS(s *progress.PendingSend, address uint64, buffer int) {
	p := c.rts()
	p.total, p.number, p.offer, p.address = uint64(len(s.Data)), s.Number, offer(s.Offer), address
	if buffer != noBuffer {
		*p.buffer() = uint32(buffer)
	}
}

func (c *cell) setFragment(size, offset int, number uint32, buffer int) {
	c.tagged().size = uint32(size)
	*c.fragment() = fragmentPayload{offset: uint64(offset), number: number, buffer: uint32(buffer)}
}

// totalMax exceeds the memory of any machine, in bytes. A message beyond it is a
// protocol error.
const totalMax = min(math.MaxInt, 1<<47)
