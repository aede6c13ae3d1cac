//go:build mpi

package mpi

// #include <stdlib.h>
// #include "library.h"
// #cgo noescape comm_send
// #cgo nocallback comm_send
// #cgo noescape comm_recv
// #cgo nocallback comm_recv
// #cgo noescape comm_poll
// #cgo nocallback comm_poll
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale/internal/processors"
)

// A world is the MPI of this process.
type world struct {
	rank, size int
	job        Job
	version    string      // of the library
	calls      *sync.Mutex // held in calls of MPI; nil if threads may call it at the same time
	finalize   chan chan<- error
}

// start starts MPI. That is possible once in a process.
var start = sync.OnceValues(func() (*world, error) {
	type result struct {
		w   *world
		err error
	}
	started := make(chan result)
	go func() {
		// MPI_Finalize belongs on the thread that has called MPI_Init_thread.
		runtime.LockOSThread()
		w, owned, err := initialize()
		started <- result{w, err}
		if err != nil {
			return
		}
		reply := <-w.finalize
		if owned && C.library_finalize() != 0 {
			err = errors.New("mpi: MPI_Finalize failed")
		}
		reply <- err
	}()
	r := <-started
	return r.w, r.err
})

// initialize starts MPI on this thread. Owned says that it was not started before.
func initialize() (w *world, owned bool, err error) {
	var mine, threads, rank, size C.int
	version, text := (*C.char)(C.malloc(C.TEXT)), (*C.char)(C.malloc(C.TEXT))
	defer C.free(unsafe.Pointer(version))
	defer C.free(unsafe.Pointer(text))
	if C.library_init(&mine, &threads, &rank, &size, version, text) != 0 {
		return nil, false, fmt.Errorf("mpi: MPI does not start: %s", C.GoString(text))
	}
	w = &world{
		rank: int(rank), size: int(size),
		version:  firstLine(C.GoString(version)),
		finalize: make(chan chan<- error),
	}
	switch threads {
	case 0:
		return nil, false, fmt.Errorf("mpi: %s allows no calls from several threads: want MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE", w.version)
	case 1:
		w.calls = new(sync.Mutex)
	}
	if err := launchedBy(w.size, w.version, os.LookupEnv); err != nil {
		return nil, false, err
	}
	lowest, fewest := make([]C.int, size), C.int(processors.Available())
	if C.library_hosts(&lowest[0], &fewest, text) != 0 {
		return nil, false, fmt.Errorf("mpi: which ranks share a host is not known: %s", C.GoString(text))
	}
	w.job = Job{Hosts: hosts(lowest), Processors: int(fewest)}
	return w, mine != 0, nil
}

// hosts numbers the hosts of ranks, given the lowest rank of each one's host.
func hosts[N ~int32](lowest []N) []int {
	numbers, count := make([]int, len(lowest)), 0
	for rank, first := range lowest {
		if int(first) == rank {
			numbers[rank] = count
			count++
		} else {
			numbers[rank] = numbers[first]
		}
	}
	return numbers
}

// local returns the number of ranks on this host.
func (w *world) local() (n int) {
	for _, host := range w.job.Hosts {
		if host == w.job.Hosts[w.rank] {
			n++
		}
	}
	return n
}

// firstLine returns the first line of a text, without what follows a comma.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, ",")
	return strings.Join(strings.Fields(text), " ")
}

// launchedBy returns an error if a launcher of another MPI has started this process:
// each of its ranks is alone in a world then. Where a launcher runs inside another one,
// the variables of both are there.
func launchedBy(size int, version string, lookup func(string) (string, bool)) (err error) {
	if size > 1 {
		return nil
	}
	for _, name := range []string{"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"} {
		switch text, ok := lookup(name); {
		case text == "1":
			return nil
		case ok && err == nil:
			err = fmt.Errorf("mpi: the launcher says %s=%s, but the world of %s has %d: want the launcher of the MPI that the program was built with", name, text, version, size)
		}
	}
	return err
}

// end ends MPI in this process. It returns when all ranks have ended it.
func (w *world) end() error {
	reply := make(chan error)
	w.finalize <- reply
	return <-reply
}

const requestsMax = C.REQUESTS

// A comm is a communicator, and the requests in progress on it. The lock of the
// endpoint guards it.
type comm struct {
	c     *C.comm
	calls *sync.Mutex // of the world
}

// newComm makes a communicator of the first n ranks. Each of these has to call it.
func (w *world) newComm(n int) (comm, error) {
	text := (*C.char)(C.malloc(C.TEXT))
	defer C.free(unsafe.Pointer(text))
	c := comm{calls: w.calls}
	c.lock()
	c.c = C.comm_new(C.int(n), text)
	c.unlock()
	if c.c == nil {
		return c, fmt.Errorf("mpi: no communicator: %s", C.GoString(text))
	}
	// MPI may need calls of this rank until the others have the communicator, too.
	for wait := backoff; ; wait = min(2*wait, napMax) {
		if done, err := c.barrier(); done || err != nil {
			return c, err
		}
		pause(wait)
	}
}

func (c comm) lock() {
	if c.calls != nil {
		c.calls.Lock()
	}
}

func (c comm) unlock() {
	if c.calls != nil {
		c.calls.Unlock()
	}
}

// result unlocks, and returns whether a call has completed its request, or its error.
func (c comm) result(rc C.int) (done bool, err error) {
	c.unlock()
	if rc < 0 {
		return false, fmt.Errorf("mpi: %s", C.GoString(&c.c.error[0]))
	}
	return rc > 0, nil
}

// send begins to send n bytes at p, which are pinned, or memory of C.
func (c comm) send(index int, p uintptr, n, to, tag int) (done bool, err error) {
	c.lock()
	return c.result(C.comm_send(c.c, C.int(index), C.uintptr_t(p), C.int(n), C.int(to), C.int(tag)))
}

// recv begins to receive n bytes to p, which are pinned.
func (c comm) recv(index int, p uintptr, n, from, tag int) (done bool, err error) {
	c.lock()
	return c.result(C.comm_recv(c.c, C.int(index), C.uintptr_t(p), C.int(n), C.int(from), C.int(tag)))
}

// poll looks for requests that are complete, and for a frame.
func (c comm) poll(rounds int, yields bool, index int, buf []byte) error {
	y := C.int(0)
	if yields {
		y = 1
	}
	c.lock()
	_, err := c.result(C.comm_poll(c.c, C.int(rounds), y, C.int(index), unsafe.Pointer(unsafe.SliceData(buf)), C.int(len(buf)), frameTag))
	return err
}

// done returns the requests that the last poll has found complete.
func (c comm) done() []C.int { return c.c.index[:c.c.done] }

// arrived returns the frame that the last poll has found, if found, and whether all of it
// has arrived.
func (c comm) arrived() (source, bytes int, found, complete bool) {
	return int(c.c.source), int(c.c.bytes), c.c.arrived > 0, c.c.arrived == 2
}

// cancel takes back a receive. Done says that the request is over.
func (c comm) cancel(index int) (done bool, err error) {
	c.lock()
	return c.result(C.comm_cancel(c.c, C.int(index)))
}

// barrier enters a barrier of all ranks, and reports whether all have. It is called until
// then.
func (c comm) barrier() (done bool, err error) {
	c.lock()
	return c.result(C.comm_barrier(c.c))
}

// pause sleeps in the kernel. The timers of Go are too coarse below a millisecond.
func pause(d time.Duration) { C.library_pause(C.long(d)) }

// yield lets another process have the core.
func yield() { C.library_yield() }

// allocate returns memory of C, which MPI may use beyond a call, aligned to 64 bytes.
func allocate(n int) []byte {
	p := C.library_alloc(C.size_t(n))
	if p == nil {
		panic("mpi: out of memory")
	}
	return unsafe.Slice((*byte)(p), n)
}

func free(b []byte) { C.free(unsafe.Pointer(unsafe.SliceData(b))) }
