package tcp

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chorale-go/chorale/transport"
)

// A kind says what a frame is.
type kind uint8

const (
	data     kind = 1 + iota // the beginning of a message; the text is the call
	more                     // a message goes on
	ask                      // the sender waits for the receiver, in the call that the text names
	bye                      // the sender closes its endpoint; the text says what it did last
	abort                    // the sender gives up; the text says why
	mismatch                 // the sender gives up because of what the receiver sent; the text holds both calls

	// Letters: the text is the tag, eight bytes, and the type; the sequence is the
	// number of an offer.
	post     // a letter with its contents
	offer    // a letter that the sender keeps until it is granted
	withdraw // the letter of that number is offered no more
	grant    // the receiver takes the letter of that number
	part     // contents of the letter of that number
	taken    // letters that cost so much are out of the mailbox
)

const (
	headerLen = 24
	callMax   = 4 << 10             // bytes of a call
	reasonMax = 1 << 10             // bytes of a reason; more is cut off
	textMax   = 2*callMax + 8       // bytes of any text
	bodyMax   = 4 << 20             // bytes of a message in one frame
	copyMax   = 8 << 10             // bytes of a message that are copied behind their header
	outMax    = headerLen + textMax // bytes of a frame before its body
)

// A header begins a frame. Then come text bytes of text and body bytes of a
// message. A message of more than bodyMax bytes takes several frames: a rank
// that gives up can say so between two.
//
// On the wire, little endian:
//
//	kind u8 · 0 u8 · text u16 · body u32 · context u32 · sequence u32 · total u64
type header struct {
	kind     kind
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

// parseHeader reads a header and refuses what no rank would write, so that
// nobody makes room for a length that is not one.
func parseHeader(b []byte) (header, error) {
	body := binary.LittleEndian.Uint32(b[4:])
	total := binary.LittleEndian.Uint64(b[16:])
	h := header{
		kind:     kind(b[0]),
		text:     int(binary.LittleEndian.Uint16(b[2:])),
		body:     int(body),
		context:  binary.LittleEndian.Uint32(b[8:]),
		sequence: binary.LittleEndian.Uint32(b[12:]),
		total:    int(total),
	}
	switch {
	case h.kind < data || h.kind > taken || b[1] != 0:
		return h, fmt.Errorf("a frame of kind %d", h.kind)
	case h.text > textMax:
		return h, fmt.Errorf("a text of %d bytes", h.text)
	case total > math.MaxInt:
		return h, fmt.Errorf("a message of %d bytes", total)
	case body > bodyMax, h.kind == data && h.body > h.total, h.body > 0 && !h.kind.carries():
		return h, fmt.Errorf("a frame with %d bytes of a message of %d", body, total)
	}
	return h, nil
}

// carries reports whether frames of this kind have a body.
func (k kind) carries() bool { return k == data || k == more || k == post || k == part }

// signature returns the call that a frame belongs to.
func (h header) signature(text []byte) transport.Signature {
	return transport.Signature{Context: h.context, Sequence: h.sequence, Call: string(text)}
}

// contradicts reports whether a frame belongs to another call of the same
// number.
func (h header) contradicts(sig *transport.Signature, text []byte) bool {
	return h.sequence == sig.Sequence && string(text) != sig.Call
}

// before compares two numbers of calls, which may have wrapped around.
func before(a, b uint32) bool { return int32(a-b) < 0 }
