package launch

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// A frame is a message between a launcher and its agent on a host, after the agent's
// hello and the launcher's orders:
//
//	kind u8 · rank u32 · length u32 · payload
//
// Numbers are little-endian. A rank that has no meaning is 0. The payload has maxFrame
// bytes at most.
type frame struct {
	kind    frameKind
	rank    int
	payload []byte // valid until the next frame is read
}

type frameKind byte

const (
	// From the launcher to its agent.
	frameSignal frameKind = 'S' // a signal for a rank: its name
	frameInput  frameKind = 'I' // bytes of the standard input of a rank; no bytes: its end
	frameAlive  frameKind = 'A' // the launcher is there: sent every aliveInterval

	// From an agent to its launcher.
	frameStdout   frameKind = 'O' // bytes that a rank has printed; no bytes: the end
	frameStderr   frameKind = 'E'
	frameEnded    frameKind = 'X' // a rank has ended: an Exit in JSON
	frameFinished frameKind = 'F' // nothing is left of a rank
	frameNote     frameKind = 'N' // lines of -v
	frameFailed   frameKind = 'B' // the agent ends: the reason

	// From the receiver of a stream to its sender, with the stream's kind in front: how
	// many bytes of it have been taken, u32.
	frameTaken frameKind = 'T'
)

// stopName is the name of the signal of a terminal that stops the ranks.
const stopName = "TSTP"

const (
	// maxFrame bounds the payload of a frame, in bytes.
	maxFrame = 32 << 10

	// streamWindow bounds the bytes of a stream that are on the way, so that a stream
	// whose receiver is blocked never blocks the connection.
	streamWindow = 64 << 10

	frameHeader = 9
)

// readFrame reads a frame into buf, which has maxFrame bytes.
func readFrame(r *bufio.Reader, buf []byte) (frame, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	rank, length := binary.LittleEndian.Uint32(header[1:]), binary.LittleEndian.Uint32(header[5:])
	if length > maxFrame || rank >= maxRanks {
		return frame{}, fmt.Errorf("a frame of %d bytes for rank %d: want at most %d bytes and a rank below %d", length, rank, maxFrame, maxRanks)
	}
	f := frame{frameKind(header[0]), int(rank), buf[:length]}
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

// taken returns the stream and the number of bytes of a frameTaken.
func (f frame) taken() (kind frameKind, bytes int, err error) {
	if len(f.payload) != 5 {
		return 0, 0, fmt.Errorf("%d bytes say what is taken: want 5", len(f.payload))
	}
	return frameKind(f.payload[0]), int(binary.LittleEndian.Uint32(f.payload[1:])), nil
}

// A frameWriter writes frames in a goroutine of its own, so that send never blocks. What
// waits to be written is bounded by the windows of the streams. Its methods may be called
// concurrently.
type frameWriter struct {
	w io.Writer

	mu      sync.Mutex
	queue   []byte
	ended   bool          // no more is queued
	pending chan struct{} // has room for one: the queue may have bytes
	idle    chan struct{} // closed when all that was queued is written, or cannot be; nil if nobody waits
	writing bool
	done    chan struct{} // closed when the goroutine has ended
}

// newFrameWriter returns a writer of frames. What begin writes comes before all frames.
func newFrameWriter(w io.Writer, begin func(io.Writer) error) *frameWriter {
	f := &frameWriter{w: w, writing: true, pending: make(chan struct{}, 1), done: make(chan struct{})}
	go f.run(begin)
	return f
}

// send queues a frame. After an error or close, it does nothing: whoever reads learns of
// the end of the connection.
func (f *frameWriter) send(kind frameKind, rank int, payload []byte) {
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

func (f *frameWriter) wake() {
	select {
	case f.pending <- struct{}{}:
	default:
	}
}

func (f *frameWriter) run(begin func(io.Writer) error) {
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
func (f *frameWriter) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.queue = true, nil
}

// flush waits until all that was sent has been written, or the limit is over.
func (f *frameWriter) flush(limit time.Duration) {
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

// close lets the goroutine end when all that was sent has been written.
func (f *frameWriter) close() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.wake()
}

// An outlet is the sending end of a stream. Write waits while the window is full.
type outlet struct {
	frames *frameWriter
	kind   frameKind
	rank   int
	over   <-chan struct{} // closed when nobody takes any more

	mu    sync.Mutex
	free  int           // how many bytes the window has room for
	freed chan struct{} // has room for one: free has grown
}

func newOutlet(frames *frameWriter, kind frameKind, rank int, over <-chan struct{}) *outlet {
	return &outlet{frames: frames, kind: kind, rank: rank, over: over, free: streamWindow, freed: make(chan struct{}, 1)}
}

func (o *outlet) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		o.mu.Lock()
		n := min(o.free, len(p), maxFrame)
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
		o.frames.send(o.kind, o.rank, p[:n])
		p = p[n:]
		written += n
	}
	return written, nil
}

// Close ends the stream.
func (o *outlet) Close() error {
	o.frames.send(o.kind, o.rank, nil)
	return nil
}

// taken makes room for bytes that the receiver has taken.
func (o *outlet) taken(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n < 0 || n > streamWindow-o.free {
		return fmt.Errorf("%d bytes of rank %d are taken, of %d that were sent", n, o.rank, streamWindow-o.free)
	}
	o.free += n
	select {
	case o.freed <- struct{}{}:
	default:
	}
	return nil
}

// An inlet is the receiving end of a stream. Read waits for bytes.
type inlet struct {
	frames *frameWriter
	kind   frameKind
	rank   int

	mu    sync.Mutex
	buf   []byte
	ended bool
	more  chan struct{} // has room for one: buf or ended has changed
}

func newInlet(frames *frameWriter, kind frameKind, rank int) *inlet {
	return &inlet{frames: frames, kind: kind, rank: rank, more: make(chan struct{}, 1)}
}

// push adds the payload of a frame. A payload without bytes ends the stream.
func (i *inlet) push(p []byte) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.ended:
		return fmt.Errorf("%d bytes of rank %d after the end of the stream", len(p), i.rank)
	case len(i.buf)+len(p) > streamWindow:
		return fmt.Errorf("%d bytes of rank %d on the way: want at most %d", len(i.buf)+len(p), i.rank, streamWindow)
	}
	i.buf = append(i.buf, p...)
	i.ended = len(p) == 0
	i.wake()
	return nil
}

// end ends the stream, if it has not ended.
func (i *inlet) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	i.wake()
}

func (i *inlet) wake() {
	select {
	case i.more <- struct{}{}:
	default:
	}
}

func (i *inlet) Read(p []byte) (int, error) {
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
			i.frames.send(frameTaken, i.rank, taken[:])
			return n, nil
		case ended:
			return 0, io.EOF
		}
		<-i.more
	}
}
