package bench

import (
	"context"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are lower bounds that the machine sets, as measured. Times are in
// microseconds; a time that could not be measured is 0.
type Limits struct {
	// Copy is the time of one thread's copy from one buffer to another, both of
	// which it has used before.
	Copy []CopyLimit `json:"copy"`
	// CacheLine is the time of an exchange between two threads of one process:
	// each writes to a cache line of its own, and polls the other's until it sees
	// the write. Pinned is the same with each thread pinned to a processor of its
	// own.
	CacheLine float64 `json:"cacheLine"`
	Pinned    float64 `json:"cacheLinePinned"`
	// Loopback is the time of an exchange of 8 bytes between two threads over TCP
	// on 127.0.0.1: each writes, and reads the other's bytes. On Linux, the threads
	// poll the socket and do not sleep.
	Loopback float64 `json:"loopback"`
}

// A CopyLimit is the time to copy a number of bytes, at least one.
type CopyLimit struct {
	Bytes int     `json:"bytes"`
	Time  float64 `json:"time"`
	Huge  float64 `json:"huge,omitempty"` // the same between buffers on huge pages; measured for 64 KiB and more
}

// Compare fills in the row's bandwidth and its ratios to the machine's limits.
func (r *Row) Compare(l Limits) {
	if r.Median <= 0 {
		return
	}
	r.Bandwidth = float64(r.Bytes) / r.Median
	if r.Collective == rate {
		r.Bandwidth *= Window
	}
	for _, c := range l.Copy {
		if c.Bytes == r.Bytes && c.Time > 0 {
			r.ToCopy = r.Median / c.Time
		}
	}
	if exchange := l.Exchange(r.Transport); exchange > 0 {
		r.ToExchange = r.Median / exchange
	}
}

// Exchange returns the time of an exchange over the medium of a transport: a TCP
// connection, or a cache line, free or pinned, whichever is faster. It is 0 where ranks use
// several (auto), or where it is not known.
func (l Limits) Exchange(transport string) float64 {
	switch {
	case transport == "auto": // between hosts: not measured
		return 0
	case transport == "tcp":
		return l.Loopback
	case l.CacheLine == 0 || l.Pinned == 0:
		return max(l.CacheLine, l.Pinned)
	}
	return min(l.CacheLine, l.Pinned)
}

// MeasureLimits measures the limits, with copies of the sizes given. Each takes some
// 10 ms. When the context ends, the rest stay 0.
func MeasureLimits(ctx context.Context, sizes []int) Limits {
	l := Limits{Copy: []CopyLimit{}}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(sizes))) {
		if ctx.Err() == nil && n > 0 {
			l.Copy = append(l.Copy, CopyLimit{n, copyTime(n), hugeCopyTime(n)})
		}
	}
	if ctx.Err() != nil {
		return l
	}
	if runtime.GOMAXPROCS(0) > 1 {
		l.CacheLine = timeOrZero(cacheLineTime(func(int) error { return nil }))
		l.Pinned = timeOrZero(cacheLineTime(pin))
	}
	l.Loopback = timeOrZero(loopbackTime())
	return l
}

// timeOrZero returns 0 for a time that could not be measured, because the system does
// not allow it.
func timeOrZero(µs float64, err error) float64 {
	if err != nil {
		return 0
	}
	return µs
}

// fastest returns the time of one of many calls, in µs: the least of a few samples,
// because disturbances only ever slow a machine down. f makes the number of calls
// that it is given.
func fastest(calls int, f func(calls int)) float64 {
	const samples = 12 // of which the first warms up
	least := math.Inf(1)
	for range samples {
		begin := time.Now()
		f(calls)
		least = min(least, float64(time.Since(begin))/float64(time.Microsecond)/float64(calls))
	}
	return least
}

// copyTime returns the time to copy n bytes, in µs.
func copyTime(n int) float64 {
	var m memory
	reserve(&m.in, n)
	reserve(&m.out, n)
	return timeOfCopy(m.out[:n], m.in[:n])
}

// hugeFrom is the least number of bytes whose copy is measured on huge pages: fewer are on
// one page or a few in any case.
const hugeFrom = 64 << 10

// hugeCopyTime is copyTime between buffers on huge pages, or 0 if there are none.
func hugeCopyTime(n int) float64 {
	if n < hugeFrom {
		return 0
	}
	src, free, err := hugePages(n)
	if err != nil {
		return 0
	}
	defer free()
	dst, free, err := hugePages(n)
	if err != nil {
		return 0
	}
	defer free()
	return timeOfCopy(dst, src)
}

// timeOfCopy returns the time to copy src to dst, in µs.
func timeOfCopy(dst, src []byte) float64 {
	n := len(src)
	return fastest(max(1, 2<<20/n), func(calls int) {
		for range calls {
			copy(dst, src)
		}
	})
}

const (
	exchanges = 2000 // in a sample
	spinLimit = 1000 // polls before the thread yields its processor
)

// A paddedCounter shares neither its cache line nor an adjacent one, which the
// processor may prefetch, with other data.
type paddedCounter struct {
	_ [128]byte
	n atomic.Int64
	_ [128]byte
}

// cacheLineTime measures the exchange between two threads, each of which calls
// prepare first.
func cacheLineTime(prepare func(thread int) error) (µs float64, err error) {
	var (
		counters [2]paddedCounter
		errs     [2]error
		ready    sync.WaitGroup
		threads  sync.WaitGroup
	)
	ready.Add(2)
	for i := range counters {
		threads.Go(func() {
			runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
			errs[i] = prepare(i)
			ready.Done()
			ready.Wait()
			if errs[0] != nil || errs[1] != nil {
				return
			}
			mine, theirs, n := &counters[i].n, &counters[1-i].n, int64(0)
			t := fastest(exchanges, func(calls int) {
				for range calls {
					n++
					mine.Store(n)
					for polls := 0; theirs.Load() < n; polls++ {
						if polls > spinLimit {
							runtime.Gosched()
						}
					}
				}
			})
			if i == 0 {
				µs = t
			}
		})
	}
	threads.Wait()
	if errs[0] != nil {
		return 0, errs[0]
	}
	return µs, errs[1]
}

// loopbackTime measures the exchange over TCP, with the threads pinned to two
// processors if the system allows it.
func loopbackTime() (µs float64, err error) {
	const calls = 200
	ends, err := connect()
	if err != nil {
		return 0, err
	}
	var (
		errs    [2]error
		threads sync.WaitGroup
	)
	for i, end := range ends {
		threads.Go(func() {
			runtime.LockOSThread()
			pin(i)            // otherwise they may share a processor for long
			defer end.Close() // so that the other end does not block for ever
			t := fastest(calls, func(calls int) {
				if errs[i] == nil {
					errs[i] = pingpong(end, calls)
				}
			})
			if i == 0 {
				µs = t
			}
		})
	}
	threads.Wait()
	if errs[0] != nil {
		return 0, errs[0]
	}
	return µs, errs[1]
}

// connect returns the two ends of a connection.
func connect() (ends [2]*net.TCPConn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ends, err
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return ends, err
	}
	accepted, err := listener.Accept()
	if err != nil {
		dialed.Close()
		return ends, err
	}
	return [2]*net.TCPConn{dialed.(*net.TCPConn), accepted.(*net.TCPConn)}, nil
}
