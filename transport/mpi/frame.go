package mpi

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A frameKind says what a frame is.
type frameKind uint8

const (
	messageFrame  frameKind = 1 + iota // a message of a step; the text is its call
	announceFrame                      // RTS of a message of a step; the text is its call
	pullFrame                          // CTS: the receiver asks for a piece of a message of a step
	discardFrame                       // the receiver does not want a message of a step that was announced
	probeFrame                         // stall probe: the sender waits for the receiver, in the call that the text names
	creditFrame                        // returns credits for messages of steps

	leftFrame     // termination notice: the sender closes its endpoint; the text is its last call
	abortFrame    // termination notice: the sender gives up; the text says why
	mismatchFrame // termination notice: the receiver was in another call; the text has both calls
	refuseFrame   // the sender has not what a CTS asks for

	// Tagged messages. The text is the type, the offset is the tag.
	eagerFrame        // a message with its contents
	rtsFrame          // ready to send: announces a rendezvous message
	withdrawFrame     // the announced message is withdrawn
	ctsFrame          // clear to send: the receiver asks for a piece of the contents
	taggedCreditFrame // returns credits
)

const (
	headerLen = 40
	callMax   = 4 << 10       // bytes of a call
	textMax   = 2*callMax + 8 // bytes of any text
	alignment = 64            // of the body
)

// A header begins a frame. Then come text bytes of text, and from the next multiple of 64
// bytes on the body.
//
// In memory, little endian:
//
//	kind u8 · slot u8 · text u16 · number u32 · context u32 · sequence u32 · total u64 · offset u64 · order u32 · taken u32
type header struct {
	kind     frameKind
	slot     int    // of a CTS: the piece has the tag pieceTag+slot
	text     int    // bytes
	number   uint32 // of the message that is announced or asked for
	context  uint32
	sequence uint32
	total    int    // bytes of the whole message; of a CTS, those of the piece
	offset   int    // of a CTS: where the piece begins; of a tagged message, its tag
	order    uint32 // of a CTS: its number on this link; of a notice, how many CTS were answered
	taken    uint32 // of a notice: how many frames have arrived
}

func (h *header) put(b []byte) {
	b[0], b[1] = byte(h.kind), byte(h.slot)
	binary.LittleEndian.PutUint16(b[2:], uint16(h.text))
	binary.LittleEndian.PutUint32(b[4:], h.number)
	binary.LittleEndian.PutUint32(b[8:], h.context)
	binary.LittleEndian.PutUint32(b[12:], h.sequence)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.total))
	binary.LittleEndian.PutUint64(b[24:], uint64(h.offset))
	binary.LittleEndian.PutUint32(b[32:], h.order)
	binary.LittleEndian.PutUint32(b[36:], h.taken)
}

// bodyAt returns where the body of a frame begins.
func bodyAt(text int) int { return (headerLen + text + alignment - 1) / alignment * alignment }

// hasBody reports whether frames of this kind have a body: all of their message.
func (k frameKind) hasBody() bool { return k == messageFrame || k == eagerFrame }

// parse takes a frame apart. It refuses what no rank would send.
func parse(b []byte) (h header, text, body []byte, err error) {
	if len(b) < headerLen {
		return h, nil, nil, fmt.Errorf("a frame of %d bytes", len(b))
	}
	total, offset := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	h = header{
		kind:     frameKind(b[0]),
		slot:     int(b[1]),
		text:     int(binary.LittleEndian.Uint16(b[2:])),
		number:   binary.LittleEndian.Uint32(b[4:]),
		context:  binary.LittleEndian.Uint32(b[8:]),
		sequence: binary.LittleEndian.Uint32(b[12:]),
		total:    int(total),
		offset:   int(offset),
		order:    binary.LittleEndian.Uint32(b[32:]),
		taken:    binary.LittleEndian.Uint32(b[36:]),
	}
	end := headerLen + h.text
	if h.kind.hasBody() {
		end = bodyAt(h.text)
	}
	switch {
	case h.kind < messageFrame || h.kind > taggedCreditFrame:
		return h, nil, nil, fmt.Errorf("a frame of kind %d", h.kind)
	case h.text > textMax || end > len(b):
		return h, nil, nil, fmt.Errorf("a text of %d bytes", h.text)
	case total > math.MaxInt || offset > math.MaxInt:
		return h, nil, nil, fmt.Errorf("a message of %d bytes, at %d", total, offset)
	case h.kind.hasBody() && h.total != len(b)-end, !h.kind.hasBody() && end != len(b):
		return h, nil, nil, fmt.Errorf("a frame of %d bytes with a message of %d", len(b), total)
	}
	return h, b[headerLen : headerLen+h.text], b[end:], nil
}
