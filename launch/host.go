package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/launch/internal/output"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

const (
	// hostKillTimeout bounds how long a host may take to say that a killed rank has
	// ended, and to end its agent. Then its connection is ended.
	hostKillTimeout = 5 * time.Second

	// dropTimeout is how long after the connection between a rank and the launcher has
	// ended the agent may take to say how the rank has.
	dropTimeout = 2 * time.Second

	// maxSignalName bounds the name of a signal, in bytes.
	maxSignalName = 1 << 10

	// maxWords bounds what is kept of the errors of a connection's process, in bytes.
	maxWords = 1 << 10
)

// A host is the launcher's end of the connection to an agent, which runs ranks.
type host struct {
	Host
	job   *job
	ranks []int
	conn  *connection // the last one that was tried; nil before

	// Set when the agent gets its orders.
	tasks  map[int]*remoteRank // by rank; mu guards it
	frames *remote.FrameWriter
	notes  *remote.Inlet
	input  *remote.Outlet // of rank 0; nil if it has none, or is elsewhere

	failure  error  // why a rank that is lost is lost
	lastWord string // of an agent that has ended itself
	giveUp   sync.Once
	mu       sync.Mutex
	broken   bool // the connection has ended
	silent   int  // how many ticks have passed since the agent said something
}

// A remoteRank is a rank on another host.
type remoteRank struct {
	host     *host
	rank     int
	out      [2]*remote.Inlet
	state    chan byte     // has room for one: the state of its process, as the agent says
	exit     chan Exit     // has room for one; closed without one if the rank is lost
	known    chan struct{} // closed when it is known how the rank ended, or that it is lost
	finished chan struct{} // closed when nothing is left of it, or it is lost

	// Of the goroutine that reads frames, until it closes the channels.
	ended, done, lost bool
}

func (r *remoteRank) String() string                 { return rankName(r.rank, r.host.Name) }
func (r *remoteRank) place() (rank int, host string) { return r.rank, r.host.Name }

// signal has the agent signal the rank. A rank that is killed must have ended in time.
func (r *remoteRank) signal(sig os.Signal) {
	for name, s := range wireSignals {
		if s == sig {
			r.host.frames.Send(remote.FrameSignal, r.rank, []byte(name))
		}
	}
	if sig == syscall.SIGKILL {
		r.host.giveUp.Do(func() {
			time.AfterFunc(hostKillTimeout, func() { r.host.conn.process.signal(syscall.SIGKILL) })
		})
	}
}

// mustEnd ends the connection to the host, unless the agent says soon how the rank has
// ended; at once, if the host is silent.
func (r *remoteRank) mustEnd(silent bool) {
	wait := dropTimeout
	if silent {
		wait = 0
	}
	time.AfterFunc(wait, func() {
		select {
		case <-r.known:
		default:
			r.host.conn.abandon(fmt.Errorf("the host does not answer, and %v has lost the launcher", r))
		}
	})
}

// task returns the task of a rank of the host.
func (h *host) task(rank int) *remoteRank {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tasks[rank]
}

// begin gives the agent its orders, and a copy of the program if they say so. From then
// on, the ranks of the host are tasks of the job.
func (h *host) begin(o remote.Orders, program string) {
	o.Ranks = h.ranks
	o.Input = o.Input && h.ranks[0] == 0
	h.frames = remote.NewFrameWriter(h.conn.stdin, func(w io.Writer) error {
		err := json.NewEncoder(w).Encode(o)
		if err == nil && o.Bytes > 0 {
			err = h.copy(w, program, o.Bytes)
		}
		return err
	})
	j := h.job
	h.notes = remote.NewInlet(h.frames, remote.FrameNote, 0)
	go (&output.Stream{To: j.err, Label: linePrefix + "host " + h.Name + ": ", Hold: output.MaxLine}).Copy(h.notes)
	if o.Input {
		h.input = remote.NewOutlet(h.frames, remote.FrameInput, 0, j.over)
		go feed(h.input, j.cfg.Stdin, j.over)
	}
	h.tasks = make(map[int]*remoteRank)
	for _, rank := range h.ranks {
		h.add(rank)
	}
	h.conn.serve(h.read)
}

// add adds the task of a rank that is about to be started.
func (h *host) add(rank int) *remoteRank {
	r := &remoteRank{host: h, rank: rank, state: make(chan byte, 1), exit: make(chan Exit, 1), known: make(chan struct{}), finished: make(chan struct{})}
	r.out = [2]*remote.Inlet{remote.NewInlet(h.frames, remote.FrameStdout, rank), remote.NewInlet(h.frames, remote.FrameStderr, rank)}
	h.tasks[rank] = r
	go r.watch()
	return r
}

// respawnRemote has the agent of its host start a lost rank anew, of which nothing is left.
func (j *job) respawnRemote(rank int) (task, error) {
	i := slices.IndexFunc(j.hosts, func(h *host) bool { return slices.Contains(h.ranks, rank) })
	h := j.hosts[i]
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken {
		return nil, fmt.Errorf("host %s is lost", h.Name)
	}
	r := h.add(rank)
	h.frames.Send(remote.FrameRespawn, rank, nil)
	return r, nil
}

// copy writes the program to the agent.
func (h *host) copy(w io.Writer, program string, bytes int64) error {
	file, err := os.Open(program)
	if err == nil {
		defer file.Close()
		_, err = io.CopyN(w, file, bytes)
	}
	if err != nil && !errors.Is(err, io.ErrClosedPipe) { // then the connection has ended
		h.conn.abandon(fmt.Errorf("copying %s: %w", program, err))
	}
	return err
}

// watch forwards the output of a rank, and reports its end and that of its output.
func (r *remoteRank) watch() {
	j := r.host.job
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		var copies sync.WaitGroup
		for i, forward := range j.forwardRank(r.rank) {
			copies.Go(func() { forward(r.out[i]) })
		}
		copies.Wait()
	}()
	if exit, known := <-r.exit; known {
		j.ended(r, exit, j.emit)
	} else {
		j.groups.end(r.rank, "lost with its host "+r.host.Name, false, false)
		j.emit(event{task: r, lost: r.host.failure})
	}
	<-r.finished
	for _, out := range r.out {
		out.End()
	}
	end := event{task: r, finished: true}
	if r.lost {
		end.lost = r.host.failure
	}
	select {
	case <-forwarded:
	case <-j.over:
	}
	j.emit(end)
}

// read handles the frames of the agent until there are no more. Then the ranks of which
// something is left are lost.
func (h *host) read(in *bufio.Reader) {
	buf := make([]byte, remote.MaxFrame)
	var err error
	for err == nil {
		var f remote.Frame
		if f, err = remote.ReadFrame(in, buf); err == nil {
			h.heard()
			err = h.handle(f)
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		h.conn.abandon(fmt.Errorf("what its agent says is wrong: %w", err))
	}
	h.conn.end(hostKillTimeout)
	if h.failure = fmt.Errorf("the connection to host %s broke: %w", h.Name, h.conn.reason()); h.lastWord != "" {
		h.failure = fmt.Errorf("host %s: %s", h.Name, h.lastWord)
	}
	h.notes.End()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = true
	for _, r := range h.tasks {
		if !r.ended {
			close(r.known)
			close(r.exit)
		}
		if !r.done {
			r.lost = true
			close(r.finished)
		}
	}
}

// handle handles a frame. An error is one of the agent.
func (h *host) handle(f remote.Frame) error {
	switch f.Kind {
	case remote.FrameNote:
		return h.notes.Push(f.Payload)
	case remote.FrameAlive:
		return nil
	case remote.FrameFailed:
		h.lastWord = remote.Printable(f.Payload, maxWords)
		return nil
	}
	r := h.task(f.Rank)
	if r == nil {
		return fmt.Errorf("a frame for rank %d, which is not there", f.Rank)
	}
	switch f.Kind {
	case remote.FrameStdout:
		return r.out[0].Push(f.Payload)
	case remote.FrameStderr:
		return r.out[1].Push(f.Payload)
	case remote.FrameTaken:
		kind, n, err := f.Taken()
		if err == nil && (kind != remote.FrameInput || h.input == nil || f.Rank != 0) {
			err = fmt.Errorf("bytes are taken of a stream %q, which is not there", kind)
		}
		if err != nil {
			return err
		}
		return h.input.Taken(n)
	case remote.FrameState:
		if len(f.Payload) != 1 {
			return fmt.Errorf("%d bytes are the state of rank %d: want 1", len(f.Payload), f.Rank)
		}
		select {
		case r.state <- f.Payload[0]:
		default: // nobody has asked
		}
		return nil
	case remote.FrameEnded:
		var exit Exit
		if err := json.Unmarshal(f.Payload, &exit); err != nil {
			return fmt.Errorf("how rank %d ended: %w", f.Rank, err)
		}
		if len(exit.SignalName) > maxSignalName || exit.Signal < 0 || exit.Signal > 127 {
			return fmt.Errorf("rank %d was killed by signal %d", f.Rank, exit.Signal)
		}
		if r.ended {
			return fmt.Errorf("rank %d ended twice", f.Rank)
		}
		r.ended = true
		close(r.known)
		r.exit <- exit
		return nil
	case remote.FrameFinished:
		if !r.ended || r.done {
			return fmt.Errorf("rank %d is finished before its end, or twice", f.Rank)
		}
		r.done = true
		close(r.finished)
		return nil
	}
	return fmt.Errorf("a frame %q of no agent", f.Kind)
}

// closeHosts ends the connections to all hosts, and returns when their agents have
// removed what they made.
func closeHosts(hosts []*host) {
	var ends sync.WaitGroup
	for _, h := range hosts {
		if h.conn != nil {
			ends.Go(func() {
				if h.frames != nil {
					h.frames.Close()
				}
				h.conn.end(hostKillTimeout)
				<-h.conn.finished
			})
		}
	}
	ends.Wait()
}

// flushHosts waits until the agents have what was sent to them, for a moment at most.
func flushHosts(hosts []*host) {
	deadline := time.Now().Add(time.Second)
	for _, h := range hosts {
		if h.frames != nil {
			h.frames.Flush(time.Until(deadline))
		}
	}
}

// heard records that the agent has said something.
func (h *host) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = 0
}

// isSilent counts a tick, and reports whether it is the last for which the agent is waited
// for.
func (h *host) isSilent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent++
	return h.silent == silentIntervals
}

// watchHosts tells the agents that the launcher is there, and ends the connection to a host
// whose agent is silent, until ctx ends. It counts ticks, and not time: while the launcher is
// stopped, nothing is read.
func watchHosts(ctx context.Context, hosts []*host) {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, h := range hosts {
				h.frames.Send(remote.FrameAlive, 0, nil)
				if h.isSilent() {
					h.conn.abandon(fmt.Errorf("the host has been silent for %v", silentIntervals*aliveInterval))
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
