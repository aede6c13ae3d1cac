package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
)

// newTestFrames returns a writer of frames to w that ends with the test.
func newTestFrames(t *testing.T, w io.Writer) *FrameWriter {
	f := NewFrameWriter(w, func(io.Writer) error { return nil })
	t.Cleanup(func() {
		f.Close()
		<-f.done
	})
	return f
}

// frameBytes are the bytes of one frame.
func frameBytes(kind Kind, rank int, payload string) []byte {
	var b bytes.Buffer
	f := NewFrameWriter(&b, func(io.Writer) error { return nil })
	f.Send(kind, rank, []byte(payload))
	f.Close()
	<-f.done
	return b.Bytes()
}

func taken(kind Kind, n byte) string { return string([]byte{byte(kind), n, 0, 0, 0}) }

// readFrames calls handle with the frames of r, until it fails or r ends.
func readFrames(r io.Reader, handle func(Frame) error) (frames int, err error) {
	in := bufio.NewReader(r)
	buf := make([]byte, MaxFrame)
	for {
		f, err := ReadFrame(in, buf)
		if err == nil {
			err = handle(f)
		}
		if err != nil {
			return frames, err
		}
		frames++
	}
}

func TestAStreamArrivesWholeAndNeverExceedsItsWindow(t *testing.T) {
	r, w := io.Pipe()
	back, backWriter := io.Pipe()
	over := make(chan struct{})
	out := NewOutlet(newTestFrames(t, w), FrameStdout, 3, over)
	in := NewInlet(newTestFrames(t, backWriter), FrameStdout, 3)
	go readFrames(r, func(f Frame) error { return in.Push(f.Payload) }) // an error: push refuses more than the window
	go readFrames(back, func(f Frame) error {
		kind, n, err := f.Taken()
		if kind != FrameStdout || f.Rank != 3 {
			t.Errorf("bytes of %q of rank %d are taken", kind, f.Rank)
		}
		return errors.Join(err, out.Taken(n))
	})
	want := bytes.Repeat([]byte("0123456789abcdef!"), 5*StreamWindow/17)
	go func() {
		out.Write(want)
		out.Close()
	}()
	got, err := io.ReadAll(in)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d arrive, %v", len(got), len(want), err)
	}
	w.Close()
	backWriter.Close()
}

func TestAStreamThatNobodyTakesBlocksNoOther(t *testing.T) {
	r, w := io.Pipe()
	over := make(chan struct{})
	frames := newTestFrames(t, w)
	var blocked atomic.Int64
	done := make(chan error)
	go func() {
		n, err := NewOutlet(frames, FrameStdout, 0, over).Write(make([]byte, 10*StreamWindow))
		blocked.Store(int64(n))
		done <- err
	}()
	received := 0
	_, err := readFrames(r, func(f Frame) error {
		if f.Kind == FrameEnded {
			return io.EOF
		}
		if received += len(f.Payload); received == StreamWindow {
			frames.Send(FrameEnded, 0, nil)
		}
		return nil
	})
	close(over)
	if failed := <-done; err != io.EOF || failed == nil || blocked.Load() != StreamWindow || received != StreamWindow {
		t.Errorf("%d bytes are sent, %d received: %v, %v; want %d", blocked.Load(), received, failed, err, StreamWindow)
	}
	r.Close()
}

func TestFlushWaitsForABlockedConnectionNoLongerThanItsLimit(t *testing.T) {
	r, w := io.Pipe()
	frames := newTestFrames(t, w)
	frames.Send(FrameAlive, 0, nil)
	frames.Flush(10 * time.Millisecond)
	go io.Copy(io.Discard, r)
	frames.Send(FrameAlive, 0, nil)
	frames.Flush(time.Hour)
	w.Close()
}

func TestAStreamOfAWrongPeerIsRefused(t *testing.T) {
	frames := newTestFrames(t, io.Discard)
	in := NewInlet(frames, FrameStdout, 0)
	if err := in.Push(make([]byte, StreamWindow)); err != nil {
		t.Fatal(err)
	}
	if err := in.Push([]byte{1}); err == nil {
		t.Error("an inlet takes more than the window")
	}
	in.End()
	if err := in.Push([]byte{1}); err == nil {
		t.Error("an inlet takes bytes after the end")
	}
	if err := NewOutlet(frames, FrameStdout, 0, nil).Taken(1); err == nil {
		t.Error("an outlet believes that what it has not sent is taken")
	}
}

// FuzzStreams has a peer send any frames. A stream keeps no more than its window, and
// takes nothing for taken that was not sent.
func FuzzStreams(f *testing.F) {
	f.Add(append(frameBytes(FrameInput, 0, "a line\n"), frameBytes(FrameInput, 0, "")...))
	f.Add(bytes.Repeat(frameBytes(FrameInput, 0, strings.Repeat("x", MaxFrame)), 3))
	f.Add(frameBytes(FrameTaken, 2, taken(FrameStdout, 7)))
	f.Add(append(frameBytes(FrameAlive, 0, ""), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...))
	f.Fuzz(func(t *testing.T, says []byte) {
		w := newTestFrames(t, io.Discard)
		in, out := NewInlet(w, FrameInput, 0), NewOutlet(w, FrameStdout, 0, nil)
		frames, err := readFrames(bytes.NewReader(says), func(f Frame) error {
			if f.Kind == FrameTaken {
				_, n, err := f.Taken()
				return errors.Join(err, out.Taken(n))
			}
			return in.Push(f.Payload)
		})
		if err == nil || frames*headerLen > len(says) {
			t.Errorf("%d frames in %d bytes, %v", frames, len(says), err)
		}
		if len(in.buf) > StreamWindow || out.free != StreamWindow {
			t.Errorf("%d bytes are kept, and the window is %d", len(in.buf), out.free)
		}
	})
}

var testSecret = proof.Secret{1, 2, 3}

// testOrders are the line that starts two shells.
func testOrders(change func(*Orders)) []byte {
	o := Orders{
		Secret: testSecret.Reveal(), Control: "127.0.0.1:1", Transport: "tcp", Size: 3, Ranks: []int{0, 2},
		Program: "sh", Path: "sh", Args: []string{"-c", "exit 3"}, Input: true,
	}
	change(&o)
	return jsonLine(o)
}

// jsonLine returns v, which marshals, as a line of JSON.
func jsonLine(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(line, '\n')
}

func TestOrdersOfNoLauncherAreRefused(t *testing.T) {
	for what, change := range map[string]func(*Orders){
		"no secret":            func(o *Orders) { o.Secret = "c0ffee" },
		"no rank":              func(o *Orders) { o.Ranks = nil },
		"a rank of no job":     func(o *Orders) { o.Ranks = []int{3} },
		"a rank below 0":       func(o *Orders) { o.Ranks = []int{-1} },
		"a rank twice":         func(o *Orders) { o.Ranks = []int{1, 1} },
		"too many ranks":       func(o *Orders) { o.Size = MaxRanks + 1 },
		"no ranks":             func(o *Orders) { o.Size = 0 },
		"no program":           func(o *Orders) { o.Program = "" },
		"no path":              func(o *Orders) { o.Path = "" },
		"a path and a copy":    func(o *Orders) { o.Bytes = 1 },
		"a copy of less":       func(o *Orders) { o.Path, o.Bytes = "", -1 },
		"another transport":    func(o *Orders) { o.Transport = "inproc" },
		"no launcher":          func(o *Orders) { o.Control = "" },
		"processors below 0":   func(o *Orders) { o.Processors = -1 },
		"a time that is below": func(o *Orders) { o.Stall = -1 },
	} {
		if _, _, err := ParseOrders(testOrders(change)); err == nil {
			t.Errorf("%s: no error", what)
		} else if strings.Contains(err.Error(), testSecret.Reveal()[:8]) {
			t.Errorf("%s: the error has the secret: %v", what, err)
		}
	}
	if _, secret, err := ParseOrders(testOrders(func(*Orders) {})); err != nil || secret != testSecret {
		t.Errorf("orders of a launcher: %v", err)
	}
}

// FuzzOrders reads any line for a launcher's orders. What it takes is in bounds.
func FuzzOrders(f *testing.F) {
	f.Add(testOrders(func(*Orders) {}))
	f.Add(testOrders(func(o *Orders) { o.Path, o.Bytes = "", 1<<40 }))
	f.Add(testOrders(func(o *Orders) { o.Ranks = []int{2, 1} }))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, secret, err := ParseOrders(line)
		if err != nil {
			return
		}
		if !slices.IsSorted(o.Ranks) || o.Ranks[0] < 0 || o.Ranks[len(o.Ranks)-1] >= o.Size || o.Size > MaxRanks || o.Program == "" || secret == (proof.Secret{}) && !strings.Contains(string(line), "000") {
			t.Errorf("%q are the orders %+v", line, o)
		}
	})
}

func TestWhatOthersPrintIsOneLineInAnError(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"\n\n":                      "",
		"a\r\n b \n\nc":             "a; b; c",
		"\x1b[2Jred\x00\xff":        "[2Jred",
		"a\u009b2Jb\u202ec":         "a 2Jb c",
		strings.Repeat("é", 20):     "ééééé…",
		"a line that is too long\n": "a line tha…",
	} {
		if got := Printable([]byte(in), 10); got != want {
			t.Errorf("%q is printed as %q, want %q", in, got, want)
		}
	}
}
