package launch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

// newTestFrames returns a writer of frames to w that ends with the test.
func newTestFrames(t *testing.T, w io.Writer) *remote.FrameWriter {
	f := remote.NewFrameWriter(w, func(io.Writer) error { return nil })
	t.Cleanup(f.Close)
	return f
}

// frameBytes are the bytes of one frame.
func frameBytes(kind remote.Kind, rank int, payload string) []byte {
	var b bytes.Buffer
	f := remote.NewFrameWriter(&b, func(io.Writer) error { return nil })
	f.Send(kind, rank, []byte(payload))
	f.Flush(time.Hour)
	f.Close()
	return b.Bytes()
}

func taken(kind remote.Kind, n byte) string { return string([]byte{byte(kind), n, 0, 0, 0}) }

// readFrames calls handle with the frames of r, until it fails or r ends.
func readFrames(r io.Reader, handle func(remote.Frame) error) error {
	in := bufio.NewReader(r)
	buf := make([]byte, remote.MaxFrame)
	for {
		f, err := remote.ReadFrame(in, buf)
		if err == nil {
			err = handle(f)
		}
		if err != nil {
			return err
		}
	}
}

// jsonLine returns v, which marshals, as a line of JSON.
func jsonLine(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(line, '\n')
}

// newTestAgent returns an agent whose ranks have not been started.
func newTestAgent(t *testing.T) *agent {
	frames := newTestFrames(t, io.Discard)
	a := &agent{frames: frames, ranks: make(map[int]*agentRank), gone: make(chan struct{}), silent: time.AfterFunc(time.Hour, func() {})}
	t.Cleanup(func() { a.silent.Stop() })
	a.notes = remote.NewOutlet(frames, remote.FrameNote, 0, a.gone)
	a.input = remote.NewInlet(frames, remote.FrameInput, 0)
	for _, rank := range []int{0, 2} {
		a.ranks[rank] = &agentRank{out: [2]*remote.Outlet{remote.NewOutlet(frames, remote.FrameStdout, rank, a.gone), remote.NewOutlet(frames, remote.FrameStderr, rank, a.gone)}}
	}
	return a
}

// FuzzAgent has a launcher send anything to an agent with the ranks 0 and 2. The agent
// keeps no signal but those that it knows.
func FuzzAgent(f *testing.F) {
	f.Add(frameBytes(remote.FrameSignal, 2, "INT"))
	f.Add(bytes.Repeat(frameBytes(remote.FrameSignal, 0, "USR1"), 2*maxPendingSignals))
	f.Add(frameBytes(remote.FrameSignal, 1, "INT"))
	f.Add(frameBytes(remote.FrameSignal, 0, "STOP"))
	f.Add(append(frameBytes(remote.FrameInput, 0, "a line\n"), frameBytes(remote.FrameInput, 0, "")...))
	f.Add(bytes.Repeat(frameBytes(remote.FrameInput, 0, strings.Repeat("x", remote.MaxFrame)), 3))
	f.Add(frameBytes(remote.FrameTaken, 2, taken(remote.FrameStdout, 7)))
	f.Add(frameBytes(remote.FrameTaken, 0, taken(remote.FrameNote, 0)))
	f.Add(append(frameBytes(remote.FrameAlive, 0, ""), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...))
	f.Add(append(frameBytes(remote.FrameSignal, 0, stopName), frameBytes(remote.FrameSignal, 0, "CONT")...))
	f.Fuzz(func(t *testing.T, says []byte) {
		a := newTestAgent(t)
		if err := readFrames(bytes.NewReader(says), a.handle); err == nil {
			t.Error("frames without an end")
		}
		for rank, r := range a.ranks {
			if len(r.pending) > maxPendingSignals {
				t.Errorf("rank %d: %d signals are kept", rank, len(r.pending))
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
	greeting := append([]byte("noise\n"+remote.AgentMagic), jsonLine(remote.Hello{Version: remote.AgentVersion, OS: "linux", Arch: "amd64", Processors: 2})...)
	exit, err := json.Marshal(Exit{Status: 3})
	if err != nil {
		f.Fatal(err)
	}
	all := greeting
	for _, rank := range []int{1, 4} {
		all = slices.Concat(all, frameBytes(remote.FrameStdout, rank, "out\n"), frameBytes(remote.FrameStdout, rank, ""), frameBytes(remote.FrameStderr, rank, "err"),
			frameBytes(remote.FrameEnded, rank, string(exit)), frameBytes(remote.FrameFinished, rank, ""))
	}
	f.Add(all)
	f.Add(greeting)
	f.Add([]byte("chorale-agent {\"version\":2}\n"))
	f.Add(append([]byte("chorale-copy Linux x86_64\nchorale-copy\nchorale-copy Darwin arm64\n"), greeting...))
	f.Add([]byte(strings.Repeat("noise", remote.MaxHello)))
	f.Add(append(bytes.Clone(greeting), frameBytes(remote.FrameFinished, 1, "")...))
	f.Add(append(bytes.Clone(greeting), bytes.Repeat(frameBytes(remote.FrameEnded, 1, string(exit)), 2)...))
	f.Add(append(bytes.Clone(greeting), frameBytes(remote.FrameEnded, 1, `{"Signal":-9}`)...))
	f.Add(append(bytes.Clone(greeting), bytes.Repeat(frameBytes(remote.FrameStdout, 4, strings.Repeat("x", remote.MaxFrame)), 3)...))
	f.Add(append(bytes.Clone(greeting), frameBytes(remote.FrameFailed, 0, "starting rank 1\n\x1b[2Jof 5")...))
	f.Add(append(bytes.Clone(greeting), frameBytes(remote.FrameTaken, 0, taken(remote.FrameInput, 1))...))
	f.Add(append(bytes.Clone(greeting), frameBytes(remote.FrameNote, 0, "a note\n")...))
	f.Fuzz(func(t *testing.T, says []byte) {
		in := bufio.NewReader(bytes.NewReader(says))
		copies := 0
		_, noise, err := remote.ReadHello(in, func(system string) error {
			copies++
			if system == "" || len(system) > 200 {
				return fmt.Errorf("system %q", system)
			}
			return nil
		})
		if copies > 1 {
			t.Errorf("%d copies are made", copies)
		}
		if len(noise) > remote.MaxHello+remote.MaxFrame {
			t.Errorf("%d bytes of noise are kept", len(noise))
		}
		if err != nil {
			return
		}
		h := newTestHost(t)
		h.read(in)
		if h.failure == nil || len(h.failure.Error()) > 2*maxWords || strings.ContainsFunc(h.failure.Error(), unicode.IsControl) {
			t.Errorf("the host is lost because %q", h.failure)
		}
		for rank, r := range h.tasks {
			_, known := <-r.exit
			<-r.finished
			if known != r.ended || r.lost == r.done {
				t.Errorf("rank %d: ended %v, finished %v, lost %v", rank, r.ended, r.done, r.lost)
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
	h := &host{Host: Host{"h", 2}, conn: c, frames: frames, notes: remote.NewInlet(frames, remote.FrameNote, 0), tasks: make(map[int]*remoteRank)}
	for _, rank := range []int{1, 4} {
		h.tasks[rank] = &remoteRank{
			host: h, rank: rank, exit: make(chan Exit, 1), known: make(chan struct{}), finished: make(chan struct{}),
			out: [2]*remote.Inlet{remote.NewInlet(frames, remote.FrameStdout, rank), remote.NewInlet(frames, remote.FrameStderr, rank)},
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

// Whatever a program is called, its copy lies in a directory of the agent's own.
func TestACopiedProgramIsInADirectoryOfItsOwn(t *testing.T) {
	for _, name := range []string{"./program", "../../program", "/etc/program", "a/../../program", "..", ".", "/", "../", "a\\..\\b", "-rf", "\x1b[2J"} {
		above := t.TempDir()
		tmp := filepath.Join(above, "tmp")
		if err := os.Mkdir(tmp, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", tmp)
		t.Setenv("TMP", tmp)
		a := newTestAgent(t)
		g, err := guard.Start(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.job = &job{guard: g}
		a.orders = remote.Orders{Program: name, Bytes: 4}
		path, err := a.program(bufio.NewReader(strings.NewReader("true")))
		if dir := filepath.Dir(path); err == nil && (filepath.Dir(dir) != tmp || !strings.HasPrefix(filepath.Base(dir), guard.Prefix)) {
			t.Errorf("%q is copied to %s", name, path)
		}
		for _, dir := range []string{above, tmp} {
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || !files[0].IsDir() {
				t.Errorf("%q: %s has %v, %v", name, dir, files, err)
			}
		}
		g.Close()
		if left, _ := os.ReadDir(tmp); len(left) > 0 {
			t.Errorf("%q leaves %v", name, left)
		}
	}
}
