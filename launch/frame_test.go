package launch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
)

// newTestFrames returns a writer of frames to w that ends with the test.
func newTestFrames(t *testing.T, w io.Writer) *frameWriter {
	f := newFrameWriter(w, func(io.Writer) error { return nil })
	t.Cleanup(func() {
		f.close()
		<-f.done
	})
	return f
}

// frameBytes are the bytes of one frame.
func frameBytes(kind frameKind, rank int, payload string) []byte {
	var b bytes.Buffer
	f := newFrameWriter(&b, func(io.Writer) error { return nil })
	f.send(kind, rank, []byte(payload))
	f.close()
	<-f.done
	return b.Bytes()
}

func taken(kind frameKind, n byte) string { return string([]byte{byte(kind), n, 0, 0, 0}) }

// readFrames calls handle with the frames of r, until it fails or r ends.
func readFrames(r io.Reader, handle func(frame) error) (frames int, err error) {
	in := bufio.NewReader(r)
	buf := make([]byte, maxFrame)
	for {
		f, err := readFrame(in, buf)
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
	out := newOutlet(newTestFrames(t, w), frameStdout, 3, over)
	in := newInlet(newTestFrames(t, backWriter), frameStdout, 3)
	go readFrames(r, func(f frame) error { return in.push(f.payload) }) // an error: push refuses more than the window
	go readFrames(back, func(f frame) error {
		kind, n, err := f.taken()
		if kind != frameStdout || f.rank != 3 {
			t.Errorf("bytes of %q of rank %d are taken", kind, f.rank)
		}
		return errors.Join(err, out.taken(n))
	})
	want := bytes.Repeat([]byte("0123456789abcdef!"), 5*streamWindow/17)
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
		n, err := newOutlet(frames, frameStdout, 0, over).Write(make([]byte, 10*streamWindow))
		blocked.Store(int64(n))
		done <- err
	}()
	received := 0
	_, err := readFrames(r, func(f frame) error {
		if f.kind == frameEnded {
			return io.EOF
		}
		if received += len(f.payload); received == streamWindow {
			frames.send(frameEnded, 0, nil)
		}
		return nil
	})
	close(over)
	if failed := <-done; err != io.EOF || failed == nil || blocked.Load() != streamWindow || received != streamWindow {
		t.Errorf("%d bytes are sent, %d received: %v, %v; want %d", blocked.Load(), received, failed, err, streamWindow)
	}
	r.Close()
}

func TestFlushWaitsForABlockedConnectionNoLongerThanItsLimit(t *testing.T) {
	r, w := io.Pipe()
	frames := newTestFrames(t, w)
	frames.send(frameAlive, 0, nil)
	frames.flush(10 * time.Millisecond)
	go io.Copy(io.Discard, r)
	frames.send(frameAlive, 0, nil)
	frames.flush(time.Hour)
	w.Close()
}

func TestAStreamOfAWrongPeerIsRefused(t *testing.T) {
	frames := newTestFrames(t, io.Discard)
	in := newInlet(frames, frameStdout, 0)
	if err := in.push(make([]byte, streamWindow)); err != nil {
		t.Fatal(err)
	}
	if err := in.push([]byte{1}); err == nil {
		t.Error("an inlet takes more than the window")
	}
	in.end()
	if err := in.push([]byte{1}); err == nil {
		t.Error("an inlet takes bytes after the end")
	}
	if err := newOutlet(frames, frameStdout, 0, nil).taken(1); err == nil {
		t.Error("an outlet believes that what it has not sent is taken")
	}
}

// testOrders are the line that starts two shells.
func testOrders(change func(*orders)) []byte {
	o := orders{
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
	for what, change := range map[string]func(*orders){
		"no secret":            func(o *orders) { o.Secret = "c0ffee" },
		"no rank":              func(o *orders) { o.Ranks = nil },
		"a rank of no job":     func(o *orders) { o.Ranks = []int{3} },
		"a rank below 0":       func(o *orders) { o.Ranks = []int{-1} },
		"a rank twice":         func(o *orders) { o.Ranks = []int{1, 1} },
		"too many ranks":       func(o *orders) { o.Size = maxRanks + 1 },
		"no ranks":             func(o *orders) { o.Size = 0 },
		"no program":           func(o *orders) { o.Program = "" },
		"no path":              func(o *orders) { o.Path = "" },
		"a path and a copy":    func(o *orders) { o.Bytes = 1 },
		"a copy of less":       func(o *orders) { o.Path, o.Bytes = "", -1 },
		"another transport":    func(o *orders) { o.Transport = "inproc" },
		"no launcher":          func(o *orders) { o.Control = "" },
		"processors below 0":   func(o *orders) { o.Processors = -1 },
		"a time that is below": func(o *orders) { o.Stall = -1 },
	} {
		if _, _, err := parseOrders(testOrders(change)); err == nil {
			t.Errorf("%s: no error", what)
		} else if strings.Contains(err.Error(), testSecret.Reveal()[:8]) {
			t.Errorf("%s: the error has the secret: %v", what, err)
		}
	}
	if _, secret, err := parseOrders(testOrders(func(*orders) {})); err != nil || secret != testSecret {
		t.Errorf("orders of a launcher: %v", err)
	}
}

// FuzzOrders reads any line for a launcher's orders. What it takes is in bounds.
func FuzzOrders(f *testing.F) {
	f.Add(testOrders(func(*orders) {}))
	f.Add(testOrders(func(o *orders) { o.Path, o.Bytes = "", 1<<40 }))
	f.Add(testOrders(func(o *orders) { o.Ranks = []int{2, 1} }))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, secret, err := parseOrders(line)
		if err != nil {
			return
		}
		if !slices.IsSorted(o.Ranks) || o.Ranks[0] < 0 || o.Ranks[len(o.Ranks)-1] >= o.Size || o.Size > maxRanks || o.Program == "" || secret == (proof.Secret{}) && !strings.Contains(string(line), "000") {
			t.Errorf("%q are the orders %+v", line, o)
		}
	})
}

// newTestAgent returns an agent whose ranks have not been started.
func newTestAgent(t *testing.T) *agent {
	frames := newTestFrames(t, io.Discard)
	a := &agent{frames: frames, ranks: make(map[int]*agentRank), gone: make(chan struct{}), silent: time.AfterFunc(time.Hour, func() {})}
	t.Cleanup(func() { a.silent.Stop() })
	a.notes = newOutlet(frames, frameNote, 0, a.gone)
	a.input = newInlet(frames, frameInput, 0)
	for _, rank := range []int{0, 2} {
		a.ranks[rank] = &agentRank{out: [2]*outlet{newOutlet(frames, frameStdout, rank, a.gone), newOutlet(frames, frameStderr, rank, a.gone)}}
	}
	return a
}

// FuzzAgent has a launcher send anything to an agent with the ranks 0 and 2. The agent
// keeps no more than the windows, and no signal but those that it knows.
func FuzzAgent(f *testing.F) {
	f.Add(frameBytes(frameSignal, 2, "INT"))
	f.Add(bytes.Repeat(frameBytes(frameSignal, 0, "USR1"), 2*maxPendingSignals))
	f.Add(frameBytes(frameSignal, 1, "INT"))
	f.Add(frameBytes(frameSignal, 0, "STOP"))
	f.Add(append(frameBytes(frameInput, 0, "a line\n"), frameBytes(frameInput, 0, "")...))
	f.Add(bytes.Repeat(frameBytes(frameInput, 0, strings.Repeat("x", maxFrame)), 3))
	f.Add(frameBytes(frameTaken, 2, taken(frameStdout, 7)))
	f.Add(frameBytes(frameTaken, 0, taken(frameNote, 0)))
	f.Add(append(frameBytes(frameAlive, 0, ""), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...))
	f.Add(append(frameBytes(frameSignal, 0, stopName), frameBytes(frameSignal, 0, "CONT")...))
	f.Fuzz(func(t *testing.T, says []byte) {
		a := newTestAgent(t)
		frames, err := readFrames(bytes.NewReader(says), a.handle)
		if err == nil || frames*frameHeader > len(says) {
			t.Errorf("%d frames in %d bytes, %v", frames, len(says), err)
		}
		if len(a.input.buf) > streamWindow {
			t.Errorf("%d bytes of input are kept", len(a.input.buf))
		}
		for rank, r := range a.ranks {
			if len(r.pending) > maxPendingSignals || r.out[0].free != streamWindow || r.out[1].free != streamWindow {
				t.Errorf("rank %d: %d signals, windows %d and %d", rank, len(r.pending), r.out[0].free, r.out[1].free)
			}
			for _, sig := range r.pending {
				if !slices.Contains(slices.Collect(maps.Values(wireSignals)), sig.(syscall.Signal)) {
					t.Error("a rank is sent a signal that no launcher forwards")
				}
			}
		}
	})
}

// FuzzHost has an agent say anything to the launcher, which knows of its ranks in the end
// that each has ended, once, or is lost.
func FuzzHost(f *testing.F) {
	greeting := append([]byte("noise\n"+agentMagic), jsonLine(hello{agentVersion, "linux", "amd64", 2})...)
	exit, err := json.Marshal(Exit{Status: 3})
	if err != nil {
		f.Fatal(err)
	}
	all := greeting
	for _, rank := range []int{1, 4} {
		all = slices.Concat(all, frameBytes(frameStdout, rank, "out\n"), frameBytes(frameStdout, rank, ""), frameBytes(frameStderr, rank, "err"),
			frameBytes(frameEnded, rank, string(exit)), frameBytes(frameFinished, rank, ""))
	}
	f.Add(all)
	f.Add(greeting)
	f.Add([]byte("chorale-agent {\"version\":2}\n"))
	f.Add(append([]byte("chorale-copy Linux x86_64\nchorale-copy\nchorale-copy Darwin arm64\n"), greeting...))
	f.Add([]byte(strings.Repeat("noise", maxHello)))
	f.Add(append(bytes.Clone(greeting), frameBytes(frameFinished, 1, "")...))
	f.Add(append(bytes.Clone(greeting), bytes.Repeat(frameBytes(frameEnded, 1, string(exit)), 2)...))
	f.Add(append(bytes.Clone(greeting), frameBytes(frameEnded, 1, `{"Signal":-9}`)...))
	f.Add(append(bytes.Clone(greeting), bytes.Repeat(frameBytes(frameStdout, 4, strings.Repeat("x", maxFrame)), 3)...))
	f.Add(append(bytes.Clone(greeting), frameBytes(frameFailed, 0, "starting rank 1\n\x1b[2Jof 5")...))
	f.Add(append(bytes.Clone(greeting), frameBytes(frameTaken, 0, taken(frameInput, 1))...))
	f.Add(append(bytes.Clone(greeting), frameBytes(frameNote, 0, "a note\n")...))
	f.Fuzz(func(t *testing.T, says []byte) {
		in := bufio.NewReader(bytes.NewReader(says))
		copies := 0
		_, noise, err := readHello(in, func(system string) error {
			copies++
			if system == "" || len(system) > 200 {
				return fmt.Errorf("system %q", system)
			}
			return nil
		})
		if copies > 1 {
			t.Errorf("%d copies are made", copies)
		}
		if len(noise) > maxHello+maxFrame {
			t.Errorf("%d bytes of noise are kept", len(noise))
		}
		if err != nil {
			return
		}
		h := newTestHost(t)
		h.read(in)
		if h.failure == nil || len(h.failure.Error()) > 2*maxWords || strings.ContainsAny(h.failure.Error(), "\n\x1b") {
			t.Errorf("the host is lost because %q", h.failure)
		}
		for rank, r := range h.tasks {
			_, known := <-r.exit
			<-r.finished
			if known != r.ended || r.lost == r.done {
				t.Errorf("rank %d: ended %v, finished %v, lost %v", rank, r.ended, r.done, r.lost)
			}
			if len(r.out[0].buf) > streamWindow || len(r.out[1].buf) > streamWindow {
				t.Errorf("%d and %d bytes of rank %d are kept", len(r.out[0].buf), len(r.out[1].buf), rank)
			}
		}
	})
}

// newTestHost returns a host with the ranks 1 and 4, whose connection has ended.
func newTestHost(t *testing.T) *host {
	frames := newTestFrames(t, io.Discard)
	r, w := io.Pipe()
	c := &connection{host: "h", command: "ssh", stdin: w, words: tail{done: always}, begun: make(chan struct{}), exited: always}
	c.process = &process{rank: -1, over: true}
	r.Close()
	h := &host{Host: Host{"h", 2}, conn: c, frames: frames, notes: newInlet(frames, frameNote, 0), tasks: make(map[int]*remoteRank)}
	for _, rank := range []int{1, 4} {
		h.tasks[rank] = &remoteRank{
			host: h, rank: rank, exit: make(chan Exit, 1), known: make(chan struct{}), finished: make(chan struct{}),
			out: [2]*inlet{newInlet(frames, frameStdout, rank), newInlet(frames, frameStderr, rank)},
		}
	}
	return h
}

// always is closed.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func TestWhatOthersPrintIsOneLineInAnError(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"\n\n":                      "",
		"a\r\n b \n\nc":             "a; b; c",
		"\x1b[2Jred\x00\xff":        "[2Jred",
		strings.Repeat("é", 20):     "ééééé…",
		"a line that is too long\n": "a line tha…",
	} {
		if got := printable([]byte(in), 10); got != want {
			t.Errorf("%q is printed as %q, want %q", in, got, want)
		}
	}
}
