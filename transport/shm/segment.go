package shm

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// A segment is the shared memory of a job, as one endpoint has mapped it.
type segment struct {
	layout
	mem  []byte
	file *os.File // what is mapped
	own  *os.File // the same file, opened by this endpoint alone; nil where that cannot be
	bare bool     // the file has no arenas
}

// A header begins the segment.
type header struct {
	magic   [8]byte
	version uint32
	size    uint32
	job     [16]byte
}

const version = 9

var magic = [8]byte{'c', 'h', 'o', 'r', 'a', 'l', 'e', '\n'}

// NewMemory makes the shared memory of a job. It belongs to the processes that have
// the file: the ranks inherit it, and when the last of them ends nothing is left of
// it. An error says what the system lacks.
func NewMemory(size int, job [16]byte) (*os.File, error) {
	total, err := MemoryLen(size)
	if err != nil {
		return nil, err
	}
	f, err := createMemory(total, layoutOf(size).fileLen())
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	h := header{magic, version, uint32(size), job}
	if _, err := f.WriteAt(unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h)), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("shm: %w", err)
	}
	return f, nil
}

// open maps the shared memory of a job.
func open(f *os.File, size int, job [16]byte) (*segment, error) {
	s := &segment{layout: layoutOf(size)}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	wrong := fmt.Errorf("file %s is not the memory of this job of %d ranks", f.Name(), size)
	if s.bare = info.Size() == int64(s.total()); !s.bare && info.Size() != s.fileLen() {
		return nil, wrong
	}
	if err := s.mapFile(f); err != nil {
		return nil, err
	}
	if *s.header() != (header{magic, version, uint32(size), job}) {
		return nil, errors.Join(wrong, s.close())
	}
	return s, nil
}

// mapFile maps the segment, and has the file for what is mapped later.
func (s *segment) mapFile(f *os.File) (err error) {
	if s.file, s.own, err = reopen(f); err != nil {
		return err
	}
	if s.mem, err = mapFile(s.file, 0, s.total()); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

func (s *segment) close() error {
	err := errors.Join(unmapFile(s.mem), s.file.Close())
	if s.own != nil {
		err = errors.Join(err, s.own.Close())
	}
	return err
}

func (s *segment) at(offset int) unsafe.Pointer { return unsafe.Pointer(&s.mem[offset]) }

func (s *segment) header() *header { return (*header)(s.at(0)) }

func (s *segment) rankState(rank int) *rankState { return (*rankState)(s.at(s.rankStateOf(rank))) }

func (s *segment) ring(from, to int) *ring { return (*ring)(s.at(s.ringOf(from, to))) }

// pairCell returns the pair cell that one rank holds at first, and shares with another.
func (s *segment) pairCell(rank, peer int) *cell { return (*cell)(s.at(s.pairOf(rank, peer))) }

// pairTaken returns what says how many pair frames of a rank the peer has taken.
func (s *segment) pairTaken(rank, peer int) *pairTaken {
	return (*pairTaken)(s.at(s.pairOf(rank, peer) + pairCellLen))
}

// staging returns a staging buffer of a rank.
func (s *segment) staging(rank, i int) []byte {
	at := s.stagingOf(rank, i)
	return s.mem[at : at+s.stagingLen : at+s.stagingLen]
}

// multicastCells returns the multicast cells of a rank, or nil where there are none.
func (s *segment) multicastCells(rank int) unsafe.Pointer {
	if s.multicastLen() == 0 {
		return nil
	}
	return s.at(s.multicastOf(rank))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
