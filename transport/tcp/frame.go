package tcp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chorale-go/chorale/transport/internal/progress"
)

// A frameKind says what a frame is.
type frameKind uint8

const (
	messageFrame  frameKind = 1 + iota // the beginning of a message of a step; the text is its call
	chunkFrame                         // the message continues
	probeFrame                         // stall probe: the sender waits for the receiver, in the call that the text names
	leftFrame                          // termination notice: the sender closes its endpoint; the text is its last call
	abortFrame                         // termination notice: the sender gives up; the text says why
	mismatchFrame                      // termination notice: the receiver was in another call; the text has both calls

	// Tagged messages. The text is the tag, eight bytes, and the type. The sequence is
	// the number of a rendezvous message.
	eagerFrame    // a message with its contents
	rtsFrame      // ready to send: announces a rendezvous message
	withdrawFrame // the announced message is withdrawn
	ctsFrame      // clear to send: the receiver asks for the contents
	fragmentFrame // contents of a rendezvous message
	creditFrame   // returns credits

	// Flow control of steps. The sender of a held context stops after the frame that has
	// begun, until it may resume.
	holdFrame
	resumeFrame

	// A communicator is revoked. The context is its number; the text says why.
	revocationFrame
)

const (
	headerLen = 24
	callMax   = 4 << 10             // bytes of a call
	reasonMax = progress.ReasonMax  // bytes of a reason
	textMax   = 2*callMax + 8       // bytes of any text
	bodyMax   = 4 << 20             // bytes of a message in one frame,
	heldMax   = 64 << 10            // and in one while the receiver has contexts held
	copyMax   = 8 << 10             // bytes of a message that are copied behind their header
	outMax    = headerLen + textMax // bytes of a frame before its body
	tagLen    = 8                   // bytes of a tag before a type

	// exchangeMax is how many bytes of a message are in one frame while the receiver sends as
	// well, and each of the two has a processor.
	exchangeMax = 1 << 20

	heldContextsMax = 128 << 10 // contexts that a peer may hold: more than it has messages of
)

// A header begins a frame. Then come text bytes of text and body bytes of a message.
// A message of more than bodyMax bytes takes several frames: a rank that gives up can
// send its termination notice between two. Frames of messages of different contexts may
// alternate.
//
// On the wire, little endian:
//
//	kind u8 · 0 u8 · text u16 · body u32 · context u32 · sequence u32 · total u64
type header struct {
	kind     frameKind
	text     int
	body     int
	context  uint32
	sequence uint32
	total    int // bytes of the whole message
}

func (h header) append(b []byte) []byte {
	b = append(b, byte(h.kind), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.text))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.body))
	b = binary.LittleEndian.AppendUint32(b, h.context)
	b = binary.LittleEndian.AppendUint32(b, h.sequence)
	return binary.LittleEndian.AppendUint64(b, uint64(h.total))
}

// parseHeader reads a header and refuses what no rank would write, so that no memory
// is allocated for a length that is not one.
func parseHeader(b []byte) (header, error) {
	body := binary.LittleEndian.Uint32(b[4:])
	total := binary.LittleEndian.Uint64(b[16:])
	h := header{
		kind:     frameKind(b[0]),
		text:     int(binary.LittleEndian.Uint16(b[2:])),
		body:     int(body),
		context:  binary.LittleEndian.Uint32(b[8:]),
		sequence: binary.LittleEndian.Uint32(b[12:]),
		total:    int(total),
	}
	switch {
	case h.kind < messageFrame || h.kind > revocationFrame || b[1] != 0:
		return h, fmt.Errorf("a frame of kind %d", h.kind)
	case h.text > textMax:
		return h, fmt.Errorf("a text of %d bytes", h.text)
	case total > math.MaxInt:
		return h, fmt.Errorf("a message of %d bytes", total)
	case body > bodyMax, h.kind == messageFrame && h.body > h.total, h.body > 0 && !h.kind.hasBody():
		return h, fmt.Errorf("a frame with %d bytes of a message of %d", body, total)
	}
	return h, nil
}

// hasBody reports whether frames of this kind have a body.
func (k frameKind) hasBody() bool {
	return k == messageFrame || k == chunkFrame || k == eagerFrame || k == fragmentFrame
}
