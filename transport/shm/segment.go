package shm

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

// A segment is the memory of a job, as one endpoint has mapped it.
type segment struct {
	layout
	mem []byte
	own *os.File // opened by this endpoint alone; nil where that cannot be
}

// A header begins the memory of a job.
type header struct {
	magic   [8]byte
	version uint32
	size    uint32
	token   [16]byte
}

const version = 1

var magic = [8]byte{'c', 'h', 'o', 'r', 'a', 'l', 'e', '\n'}

// NewMemory makes the memory of a job. It belongs to whoever has the file: the
// ranks inherit it, and when the last of them ends nothing is left of it. An
// error says in words what the system lacks.
func NewMemory(size int, token [16]byte) (*os.File, error) {
	total, err := MemoryLen(size)
	if err != nil {
		return nil, err
	}
	f, err := createMemory(total)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	h := header{magic, version, uint32(size), token}
	if _, err := f.WriteAt(unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h)), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("shm: %w", err)
	}
	return f, nil
}

// open maps the memory of a job.
func open(f *os.File, size int, token [16]byte) (*segment, error) {
	s := &segment{layout: layoutOf(size)}
	var err error
	if s.mem, s.own, err = mapMemory(f); err != nil {
		return nil, err
	}
	if len(s.mem) < headerLen || *s.header() != (header{magic, version, uint32(size), token}) || len(s.mem) != s.total() {
		return nil, errors.Join(fmt.Errorf("file %s is not the memory of this job of %d ranks", f.Name(), size), s.close())
	}
	return s, nil
}

func (s *segment) close() error { return unmapMemory(s.mem, s.own) }

func (s *segment) at(offset int) unsafe.Pointer { return unsafe.Pointer(&s.mem[offset]) }

func (s *segment) header() *header { return (*header)(s.at(0)) }

func (s *segment) seat(rank int) *seat { return (*seat)(s.at(s.layout.seat(rank))) }

func (s *segment) lane(from, to int) *lane { return (*lane)(s.at(s.layout.lane(from, to))) }

func (s *segment) box(rank, i int) []byte {
	at := s.layout.box(rank, i)
	return s.mem[at : at+s.boxLen : at+s.boxLen]
}

// casts returns a rank's slots for casts, or nil if there are none.
func (s *segment) casts(rank int) unsafe.Pointer {
	if s.castLen() == 0 {
		return nil
	}
	return s.at(s.layout.casts() + rank*s.castLen())
}

// A lane is the queue of messages from one rank to another. The first line is
// the receiver's, and the sender's to read; in the slots, which follow it, it is
// the other way round.
type lane struct {
	taken atomic.Uint32            // messages that are out of their slots
	wants atomic.Uint32            // messages that the receiver has asked for
	want  [wantsMost]atomic.Uint32 // their numbers; the i-th is at i modulo wantsMost
	heard atomic.Uint64            // casts that are out of their slots
}

// wantsMost is how many messages a receiver asks for at a time.
const wantsMost = 12

// slot returns one of a lane's slots.
func (l *lane) slot(i uint32) *slot {
	return (*slot)(unsafe.Add(unsafe.Pointer(l), lineLen*(1+uintptr(i))))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
