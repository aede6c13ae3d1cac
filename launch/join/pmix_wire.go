package join

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Messages of PMIx in the formats v21 and v3, which are the same for what this package
// sends. Numbers are big-endian. Each item of a message is preceded by a count, which
// is always 1 here; items within a value have none unless said.

const (
	pmixHeader     = 16
	firstPMIxTag   = 100     // of requests; below it are messages that nobody asked for
	maxPMIxMessage = 1 << 20 // bytes
)

// The commands of a client.
const (
	pmixAbort    = 1
	pmixCommit   = 2
	pmixFence    = 3
	pmixGet      = 4
	pmixFinalize = 5
)

// The types of values.
const (
	pmixBool   = 1
	pmixString = 3
	pmixSize   = 15
	pmixUint32 = 14
)

const (
	pmixAllRanks = 0xfffffffe
	pmixGlobal   = 3 // the scope of a key that all ranks of the job may get
)

// A pmixMessage is what the server sends.
type pmixMessage struct {
	tag  uint32
	body []byte
}

// pmixReader returns the function that reads the server's messages. The first is the
// answer to the hello: a status, and if that is 0 an index, without a header. Its tag
// is 0.
func pmixReader() func(*bufio.Reader) (pmixMessage, error) {
	greeted := false
	return func(r *bufio.Reader) (pmixMessage, error) {
		if !greeted {
			greeted = true
			body := make([]byte, 8)
			if _, err := io.ReadFull(r, body[:4]); err != nil || binary.BigEndian.Uint32(body) != 0 {
				return pmixMessage{body: body[:4]}, err
			}
			_, err := io.ReadFull(r, body[4:])
			return pmixMessage{body: body}, err
		}
		for {
			var header [pmixHeader]byte
			if _, err := io.ReadFull(r, header[:]); err != nil {
				return pmixMessage{}, err
			}
			tag, length := binary.BigEndian.Uint32(header[4:]), binary.BigEndian.Uint32(header[8:])
			if length > maxPMIxMessage {
				return pmixMessage{}, fmt.Errorf("the launcher sends a message of %d bytes: want at most %d", length, maxPMIxMessage)
			}
			if tag < firstPMIxTag {
				if _, err := r.Discard(int(length)); err != nil {
					return pmixMessage{}, err
				}
				continue
			}
			m := pmixMessage{tag, make([]byte, length)}
			_, err := io.ReadFull(r, m.body)
			return m, err
		}
	}
}

// pmixHello returns the first message to the server. Its header, and the ids in it, are
// in the byte order of the host.
func pmixHello(namespace string, rank int, format string, uid, gid int) []byte {
	var p packer
	p.text("native")
	p.u32(8)
	p = binary.NativeEndian.AppendUint32(p, uint32(uid))
	p = binary.NativeEndian.AppendUint32(p, uint32(gid))
	p.u8(0) // a simple client
	p.text(namespace)
	p.u32(uint32(rank))
	p.text("4.2.2") // the version of which this is the protocol
	p.text(format)
	p.u8(1) // values carry their types, other items do not
	p.text("hash")

	h := binary.NativeEndian.AppendUint32(nil, 0xffffffff)
	h = binary.NativeEndian.AppendUint32(h, 0xffffffff)
	h = binary.NativeEndian.AppendUint32(h, uint32(len(p)))
	h = binary.NativeEndian.AppendUint32(h, 0)
	return append(h, p...)
}

// pmixRequest returns a message with its header.
func pmixRequest(index, tag uint32, body packer) []byte {
	var p packer
	p.u32(index)
	p.u32(tag)
	p.u32(uint32(len(body)))
	p.u32(0)
	return append(p, body...)
}

// A packer appends what a message has.
type packer []byte

func (p *packer) u8(n uint8)   { *p = append(*p, n) }
func (p *packer) u16(n uint16) { *p = binary.BigEndian.AppendUint16(*p, n) }
func (p *packer) u32(n uint32) { *p = binary.BigEndian.AppendUint32(*p, n) }

// text appends a text with its end.
func (p *packer) text(s string) { *p = append(append(*p, s...), 0) }

// string appends a text with its length.
func (p *packer) string(s string) {
	p.u32(uint32(len(s) + 1))
	p.text(s)
}

// size appends a length.
func (p *packer) size(n int) {
	p.u16(pmixSize)
	*p = binary.BigEndian.AppendUint64(*p, uint64(n))
}

// item starts an item.
func (p *packer) item() { p.u32(1) }

func (p *packer) command(c uint8) { p.item(); p.u8(c) }

func (p *packer) sizeItem(n int) { p.item(); p.size(n) }

// process appends the item of a rank's name.
func (p *packer) process(namespace string, rank uint32) {
	p.item()
	p.string(namespace)
	p.u32(rank)
}

var errShort = errors.New("the launcher's answer is cut off")

// An unpacker takes a message apart, and keeps the first error.
type unpacker struct {
	rest []byte
	err  error
}

func (u *unpacker) fail(err error) {
	if u.err == nil {
		u.err = err
	}
	u.rest = nil
}

// bytes returns the next n bytes; zeros if there are fewer.
func (u *unpacker) bytes(n uint64) []byte {
	if n > uint64(len(u.rest)) {
		u.fail(errShort)
		return make([]byte, min(n, 8))
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

func (u *unpacker) u16() uint16 { return binary.BigEndian.Uint16(u.bytes(2)) }
func (u *unpacker) u32() uint32 { return binary.BigEndian.Uint32(u.bytes(4)) }

// item starts an item.
func (u *unpacker) item() {
	if n := u.u32(); n != 1 {
		u.fail(fmt.Errorf("the launcher's answer has %d items in the place of one", n))
	}
}

func (u *unpacker) status() int32 { u.item(); return int32(u.u32()) }

func (u *unpacker) string() string {
	b := u.bytes(uint64(u.u32()))
	if len(b) == 0 {
		return ""
	}
	if b[len(b)-1] != 0 {
		u.fail(errors.New("a text in the launcher's answer has no end"))
	}
	return string(b[:len(b)-1])
}

// skipValue passes over a value, of one of the types that chorale's ranks put or ask for.
func (u *unpacker) skipValue() {
	switch kind := u.u16(); kind {
	case pmixString:
		u.string()
	case pmixUint32:
		u.u32()
	default:
		u.fail(fmt.Errorf("the launcher's answer has a value of type %d that was not asked for", kind))
	}
}

// buffer returns the items of a buffer in the message.
func (u *unpacker) buffer() unpacker {
	u.item()
	if t := u.u16(); t != pmixSize {
		u.fail(fmt.Errorf("the launcher's answer has type %d in the place of a length", t))
	}
	n := binary.BigEndian.Uint64(u.bytes(8))
	return unpacker{rest: u.bytes(n), err: u.err}
}
