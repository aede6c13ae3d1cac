package remote

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// A Frame is a message between a launcher and its agent on a host, after the agent's
// hello and the launcher's orders:
//
//	kind u8 · rank u32 · length u32 · payload
//
// Numbers are little-endian. A rank that has no meaning is 0. The payload has MaxFrame
// bytes at most.
type Frame struct {
	Kind    Kind
	Rank    int
	Payload []byte // valid until the next frame is read
}

// A Kind says what a frame is for.
type Kind byte

const (
	// From the launcher to its agent.
	FrameSignal  Kind = 'S' // a signal for a rank: its name
	FrameInput   Kind = 'I' // bytes of the standard input of a rank; no bytes: its end
	FrameRespawn Kind = 'R' // starts a rank anew, of which nothing is left
	FrameState   Kind = 'P' // asks for the state of a rank's process; the answer is one byte, as ps shows it, or 0

	// From an agent to its launcher.
	FrameStdout   Kind = 'O' // bytes that a rank has printed; no bytes: the end
	FrameStderr   Kind = 'E'
	FrameEnded    Kind = 'X' // a rank has ended: an Exit in JSON
	FrameFinished Kind = 'F' // nothing is left of a rank
	FrameNote     Kind = 'N' // lines of -v
	FrameFailed   Kind = 'B' // the agent ends: the reason

	// From either.
	FrameAlive Kind = 'A' // the sender is there: sent again and again

	// From the receiver of a stream to its sender, with the stream's kind in front: how
	// many bytes of it have been taken, u32.
	FrameTaken Kind = 'T'
)

const (
	// MaxFrame bounds the payload of a frame, in bytes.
	MaxFrame = 32 << 10

	// StreamWindow bounds the bytes of a stream that are on the way, so that a stream
	// whose receiver is blocked never blocks the connection.
	StreamWindow = 64 << 10

	// headerLen is the length of a frame without its payload, in bytes.
	headerLen = 9

	// MaxRanks bounds the ranks of a job: it is more processes than hosts can run.
	MaxRanks = 1 << 16
)

// ReadFrame reads a frame into buf, which has MaxFrame bytes.
func ReadFrame(r *bufio.Reader, buf []byte) (Frame, error) {
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	rank, length := binary.LittleEndian.Uint32(header[1:]), binary.LittleEndian.Uint32(header[5:])
	if length > MaxFrame || rank >= MaxRanks {
		return Frame{}, fmt.Errorf("a frame of %d bytes for rank %d: want at most %d bytes and a rank below %d", length, rank, MaxFrame, MaxRanks)
	}
	f := Frame{Kind(header[0]), int(rank), buf[:length]}
	_, err := io.ReadFull(r, f.Payload)
	return f, err
}

// Taken returns the stream and the number of bytes of a FrameTaken.
func (f Frame) Taken() (kind Kind, bytes int, err error) {
	if len(f.Payload) != 5 {
		return 0, 0, fmt.Errorf("%d bytes say what is taken: want 5", len(f.Payload))
	}
	return Kind(f.Payload[0]), int(binary.LittleEndian.Uint32(f.Payload[1:])), nil
}

// A FrameWriter writes frames in a goroutine of its own, so that Send never blocks. What
// waits to be written is bounded by the windows of the streams. Its methods may be called
// concurrently.
type FrameWriter struct {
	w io.Writer

	mu      sync.Mutex
	queue   []byte
	ended   bool          // no more is queued
	pending chan struct{} // has room for one: the queue may have bytes
	idle    chan struct{} // closed when all that was queued is written, or cannot be; nil if nobody waits
	writing bool
	done    chan struct{} // closed when the goroutine has ended
}

// NewFrameWriter returns a writer of frames. What begin writes comes before all frames.
func NewFrameWriter(w io.Writer, begin func(io.Writer) error) *FrameWriter {
	f := &FrameWriter{w: w, writing: true, pending: make(chan struct{}, 1), done: make(chan struct{})}
	go f.run(begin)
	return f
}

// Send queues a frame. After an error or Close, it does nothing: whoever reads learns of
// the end of the connection.
func (f *FrameWriter) Send(kind Kind, rank int, payload []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.queue = append(f.queue, byte(kind))
	f.queue = binary.LittleEndian.AppendUint32(f.queue, uint32(rank))
	f.queue = binary.LittleEndian.AppendUint32(f.queue, uint32(len(payload)))
	f.queue = append(f.queue, payload...)
	f.wake()
}

func (f *FrameWriter) wake() {
	select {
	case f.pending <- struct{}{}:
	default:
	}
}

func (f *FrameWriter) run(begin func(io.Writer) error) {
	defer close(f.done)
	if err := begin(f.w); err != nil {
		f.fail()
	}
	for {
		f.mu.Lock()
		batch := f.queue
		f.queue = nil
		f.writing = len(batch) > 0
		if !f.writing && f.idle != nil {
			close(f.idle)
			f.idle = nil
		}
		ended := f.ended
		f.mu.Unlock()
		switch {
		case len(batch) > 0:
			if _, err := f.w.Write(batch); err != nil {
				f.fail()
			}
		case ended:
			return
		default:
			<-f.pending
		}
	}
}

// fail drops what is queued and what will be sent.
func (f *FrameWriter) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.queue = true, nil
}

// Flush waits until all that was sent has been written, or the limit is over.
func (f *FrameWriter) Flush(limit time.Duration) {
	f.mu.Lock()
	if !f.writing && len(f.queue) == 0 {
		f.mu.Unlock()
		return
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

// Close lets the goroutine end when all that was sent has been written.
func (f *FrameWriter) Close() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.wake()
}

// An Outlet is the sending end of a stream. Write waits while the window is full.
type Outlet struct {
	frames *FrameWriter
	kind   Kind
	rank   int
	over   <-chan struct{} // closed when nobody takes any more

	mu    sync.Mutex
	free  int           // how many bytes the window has room for
	freed chan struct{} // has room for one: free has grown
}

func NewOutlet(frames *FrameWriter, kind Kind, rank int, over <-chan struct{}) *Outlet {
	return &Outlet{frames: frames, kind: kind, rank: rank, over: over, free: StreamWindow, freed: make(chan struct{}, 1)}
}

func (o *Outlet) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		o.mu.Lock()
		n := min(o.free, len(p), MaxFrame)
		o.free -= n
		o.mu.Unlock()
		if n == 0 {
			select {
			case <-o.freed:
				continue
			case <-o.over:
				return written, io.ErrClosedPipe
			}
		}
		o.frames.Send(o.kind, o.rank, p[:n])
		p = p[n:]
		written += n
	}
	return written, nil
}

// Close ends the stream.
func (o *Outlet) Close() error {
	o.frames.Send(o.kind, o.rank, nil)
	return nil
}

// Taken makes room for bytes that the receiver has taken.
func (o *Outlet) Taken(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n < 0 || n > StreamWindow-o.free {
		return fmt.Errorf("%d bytes of rank %d are taken, of %d that were sent", n, o.rank, StreamWindow-o.free)
	}
	o.free += n
	select {
	case o.freed <- struct{}{}:
	default:
	}
	return nil
}

// An Inlet is the receiving end of a stream. Read waits for bytes.
type Inlet struct {
	frames *FrameWriter
	kind   Kind
	rank   int

	mu    sync.Mutex
	buf   []byte
	ended bool
	more  chan struct{} // has room for one: buf or ended has changed
}

func NewInlet(frames *FrameWriter, kind Kind, rank int) *Inlet {
	return &Inlet{frames: frames, kind: kind, rank: rank, more: make(chan struct{}, 1)}
}

// Push adds the payload of a frame. A payload without bytes ends the stream.
func (i *Inlet) Push(p []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.ended:
		return fmt.Errorf("%d bytes of rank %d after the end of the stream", len(p), i.rank)
	case len(i.buf)+len(p) > StreamWindow:
		return fmt.Errorf("%d bytes of rank %d on the way: want at most %d", len(i.buf)+len(p), i.rank, StreamWindow)
	}
	i.buf = append(i.buf, p...)
	i.ended = len(p) == 0
	i.wake()
	return nil
}

// End ends the stream, if it has not ended.
func (i *Inlet) End() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.wake()
}

func (i *Inlet) wake() {
	select {
	case i.more <- struct{}{}:
	default:
	}
}

func (i *Inlet) Read(p []byte) (int, error) {
	for {
		i.mu.Lock()
		n := copy(p, i.buf)
		i.buf = i.buf[:copy(i.buf, i.buf[n:])]
		ended := i.ended
		i.mu.Unlock()
		switch {
		case n > 0:
			var taken [5]byte
			taken[0] = byte(i.kind)
			binary.LittleEndian.PutUint32(taken[1:], uint32(n))
			i.frames.Send(FrameTaken, i.rank, taken[:])
			return n, nil
		case ended:
			return 0, io.EOF
		}
		<-i.more
	}
}
