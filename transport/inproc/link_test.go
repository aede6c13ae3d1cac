package inproc

import (
	"encoding/binary"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// A directed is the messages from one rank to another, without Exchange.
type directed struct {
	*testing.T
	*link
	written, read uint64
}

// linked returns both directions between two of some ranks.
func linked(t *testing.T, ranks int) (there, back *directed) {
	j := New(ranks)
	a, b := j.Endpoint(0).comm(1), j.Endpoint(1).comm(1)
	there, back = &directed{T: t}, &directed{T: t}
	var errs [4]error
	there.link, errs[0] = a.linkTo(1)
	back.link, errs[1] = a.linkFrom(1)
	_, errs[2] = b.linkFrom(0)
	_, errs[3] = b.linkTo(0)
	if errs != [4]error{} {
		t.Fatal(errs)
	}
	return there, back
}

// write writes the next message, which is its number, and reports whether there was
// a free cell.
func (d *directed) send() bool {
	var m [8]byte
	binary.LittleEndian.PutUint64(m[:], d.written)
	if !d.link.write(&transport.Signature{Call: "test"}, m[:]) {
		return false
	}
	d.written++
	return true
}

// receive reads the next message.
func (d *directed) receive() {
	d.Helper()
	var m [8]byte
	if d.next() == nil || !d.link.read(&transport.Recv{Into: m[:]}) {
		d.Fatalf("message %d is not there", d.read)
	}
	if got := binary.LittleEndian.Uint64(m[:]); got != d.read {
		d.Fatalf("message %d is %d", d.read, got)
	}
	d.read++
}

// Messages of one direction lie unread, with acknowledgments from before, while so
// many of the other direction are sent that the 16 bits of these wrap around.
func TestAnOldAcknowledgmentFreesNoCell(t *testing.T) {
	const wrap = 1 << 16
	for unread := 1; unread <= shallow; unread++ {
		for n := wrap - shallow; n <= wrap+shallow; n++ {
			there, back := linked(t, DeepRanks+1)
			for range unread {
				back.send()
			}
			for range n {
				there.send()
				there.receive()
			}
			for range unread {
				back.receive()
			}
			free := 0
			for there.send() {
				if free++; free > shallow {
					t.Fatalf("%d messages after %d: a message that is not read is overwritten", free, n)
				}
			}
			for range free {
				there.receive()
			}
		}
	}
}

// So a sender that gets replies never reads the count that its receiver writes.
func TestRepliesAcknowledgeMessages(t *testing.T) {
	there, back := linked(t, 3)
	for i := range uint32(3 * depth) {
		there.send()
		there.receive()
		back.send()
		back.receive()
		if got := there.link.sender.read; got != i+1 {
			t.Errorf("after %d replies, %d messages are known to have been read", i+1, got)
		}
	}
	// A count that was read is newer than the acknowledgments of messages that may
	// have been written before.
	for range depth + 1 {
		there.send()
		there.receive()
	}
	for range 2 * depth {
		back.send()
		back.receive()
	}
	if got, want := there.link.sender.read, there.link.sender.written; got != want {
		t.Errorf("%d messages are known to have been read, of %d", got, want)
	}
}
