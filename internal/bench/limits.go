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

// Limits is what the machine allows, measured. Times are in microseconds; 0 is
// one that could not be measured.
type Limits struct {
	// Copy is the time of one thread's copy from one buffer to another, both of
	// which it has used before.
	Copy []CopyLimit `json:"copy"`
	// CacheLine is the time of an exchange between two threads of one process:
	// each writes to a cache line of its own, and waits until it sees what the
	// other has written. Pinned is the same with each thread on a processor of
	// its own for good.
	CacheLine float64 `json:"cacheLine"`
	Pinned    float64 `json:"cacheLinePinned"`
	// Loopback is the time of an exchange of 8 bytes between two threads over
	// TCP on 127.0.0.1: each writes, and reads what the other has written. Where
	// the system allows, they ask again instead of going to sleep.
	Loopback float64 `json:"loopback"`
}

// A CopyLimit is what it takes to copy so many bytes, at least one.
type CopyLimit struct {
	Bytes int     `json:"bytes"`
	Time  float64 `json:"time"`
}

// Compare fills in what follows from the row's times: bandwidth, and ratios to
// what the machine allows.
func (r *Row) Compare(l Limits) {
	if r.Median <= 0 {
		return
	}
	r.Bandwidth = float64(r.Bytes) / r.Median
	for _, c := range l.Copy {
		if c.Bytes == r.Bytes && c.Time > 0 {
			r.ToCopy = r.Median / c.Time
		}
	}
	if exchange := l.Exchange(r.Transport); exchange > 0 {
		r.ToExchange = r.Median / exchange
	}
}

// Exchange returns the time of an exchange by what a transport is made of: TCP,
// or the faster of the two ways over a cache line.
func (l Limits) Exchange(transport string) float64 {
	switch {
	case transport == "tcp":
		return l.Loopback
	case l.CacheLine == 0 || l.Pinned == 0:
		return max(l.CacheLine, l.Pinned)
	}
	return min(l.CacheLine, l.Pinned)
}

// MeasureLimits measures the limits, with copies of the sizes given. It takes
// some 10 ms for each, and leaves out the rest when the context ends.
func MeasureLimits(ctx context.Context, sizes []int) Limits {
	l := Limits{Copy: []CopyLimit{}}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(sizes))) {
		if ctx.Err() == nil && n > 0 {
			l.Copy = append(l.Copy, CopyLimit{n, copyTime(n)})
		}
	}
	if ctx.Err() != nil {
		return l
	}
	if runtime.GOMAXPROCS(0) > 1 {
		l.CacheLine = known(cacheLineTime(func(int) error { return nil }))
		l.Pinned = known(cacheLineTime(pin))
	}
	l.Loopback = known(loopbackTime())
	return l
}

// known is 0 for what could not be measured: not every system has or allows it.
func known(µs float64, err error) float64 {
	if err != nil {
		return 0
	}
	return µs
}

// best returns the time of one of many calls, in µs: the best of a few samples,
// because nothing makes a machine faster than it is. f does as many calls as it
// is told.
func best(calls int, f func(calls int)) float64 {
	const samples = 12 // of which the first warms up
	least := math.Inf(1)
	for range samples {
		begin := time.Now()
		f(calls)
		least = min(least, float64(time.Since(begin))/float64(time.Microsecond)/float64(calls))
	}
	return least
}

// copyTime copies for a few milliseconds.
func copyTime(n int) float64 {
	var m memory
	reserve(&m.in, n)
	reserve(&m.out, n)
	src, dst := m.in[:n], m.out[:n]
	return best(max(1, 2<<20/n), func(calls int) {
		for range calls {
			copy(dst, src)
		}
	})
}

const (
	exchanges = 2000 // in a sample
	patience  = 1000 // looks before another thread may have the processor
)

// A line is a number that shares a cache line with nothing else, whatever the
// processor fetches along with it.
type line struct {
	_ [128]byte
	n atomic.Int64
	_ [128]byte
}

// cacheLineTime measures the exchange between two threads, each of which calls
// settle first.
func cacheLineTime(settle func(thread int) error) (µs float64, err error) {
	var (
		lines   [2]line
		errs    [2]error
		ready   sync.WaitGroup
		threads sync.WaitGroup
	)
	ready.Add(2)
	for i := range lines {
		threads.Go(func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			errs[i] = settle(i)
			ready.Done()
			ready.Wait()
			if errs[0] != nil || errs[1] != nil {
				return
			}
			mine, theirs, n := &lines[i].n, &lines[1-i].n, int64(0)
			t := best(exchanges, func(calls int) {
				for range calls {
					n++
					mine.Store(n)
					for looks := 0; theirs.Load() < n; looks++ {
						if looks > patience {
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

// loopbackTime measures the exchange over TCP, on two processors where threads
// can be kept there.
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
			pin(i)            // or else they may share a processor for long
			defer end.Close() // so that the other end does not wait for ever
			t := best(calls, func(calls int) {
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
	dialled, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return ends, err
	}
	accepted, err := listener.Accept()
	if err != nil {
		dialled.Close()
		return ends, err
	}
	return [2]*net.TCPConn{dialled.(*net.TCPConn), accepted.(*net.TCPConn)}, nil
}
