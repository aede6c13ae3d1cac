package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

// testUnreadBound posts short letters until one has to wait for its taker, and
// takes all those that had not to; again and again.
func testUnreadBound(t *testing.T, start Start) {
	const size, least, most = 60 << 10, 8, 18 // about half a MiB, and a whole one
	j := open(t, start, 2)
	n := 0
	for range 3 {
		first := n
		for waits := false; !waits || n < first+least; {
			ctx, cancel := context.WithTimeout(j.ctx, moment)
			err := post(ctx, j.ends[0], 1, stamp, letter(n, size))
			cancel()
			if waits = errors.Is(err, context.DeadlineExceeded); !waits {
				n++
			}
			switch {
			case err != nil && (!waits || j.ctx.Err() != nil):
				t.Fatalf("%d letters of %d bytes lie unread: %v", n-first, size, err)
			case n > first+most:
				t.Fatalf("%d letters of %d bytes lie unread, and another is copied", n-first, size)
			}
		}
		for i := first; i < n; i++ {
			if err := take(j.ctx, j.ends[1], 0, stamp, letter(i, size)); err != nil {
				t.Fatalf("letter %d: %v", i, err)
			}
		}
	}
}

// many are short letters that are more than a transport has room for on the way,
// and fewer than are bounded.
var many = map[string][][]byte{"few": letters(16, 60<<10, 0), "small": letters(400, 500, 1)}

func letters(n, size, more int) (all [][]byte) {
	for i := range n {
		all = append(all, letter(i, size+i*more))
	}
	return all
}

func postAll(ctx context.Context, e transport.Endpoint, to int, all [][]byte) error {
	for _, data := range all {
		if err := post(ctx, e, to, stamp, data); err != nil {
			return err
		}
	}
	return nil
}

func takeAll(ctx context.Context, e transport.Endpoint, from int, all [][]byte) error {
	for i, want := range all {
		if err := take(ctx, e, from, stamp, want); err != nil {
			return fmt.Errorf("letter %d: %w", i, err)
		}
	}
	return nil
}

// testPostedAlone has the sender do nothing more when it has posted.
func testPostedAlone(t *testing.T, start Start) {
	for name, all := range many {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 2)
			if err := errors.Join(postAll(j.ctx, j.ends[0], 1, all), takeAll(j.ctx, j.ends[1], 0, all)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func testPostedBeforeLeaving(t *testing.T, start Start) {
	for name, all := range many {
		t.Run(name, func(t *testing.T) {
			j := open(t, start, 2)
			if err := postAll(j.ctx, j.ends[0], 1, all); err != nil {
				t.Fatal(err)
			}
			j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
				return e.Close()
			}, func(ctx context.Context, e transport.Endpoint) error {
				return takeAll(ctx, e, 0, all)
			})
			checkPeer(t, take(j.ctx, j.ends[1], 0, stamp, nil), 0, transport.ErrLeft)
		})
	}
}

func testCancelledWait(t *testing.T, start Start) {
	j := open(t, start, 2)
	ctx, cancel := context.WithCancel(j.ctx)
	var waiting sync.WaitGroup
	for _, from := range []int{0, 1, transport.Any} {
		waiting.Go(func() {
			if err := take(ctx, j.ends[0], from, stamp, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("from %d: got %v, want %v", from, err, context.Canceled)
			}
		})
	}
	time.Sleep(moment)
	j.mustAll(func(ctx context.Context, e transport.Endpoint) error {
		return swap(ctx, e, sig, 1)
	}, func(ctx context.Context, e transport.Endpoint) error {
		time.Sleep(moment)
		cancel()
		waiting.Wait()
		return swap(ctx, e, sig, 0)
	})
}

// testAllHaveLeft lets ranks leave that have never talked to the one that waits.
func testAllHaveLeft(t *testing.T, start Start) {
	j := open(t, start, 4)
	errs := j.all(nil, nil, func(ctx context.Context, e transport.Endpoint) error {
		return take(ctx, e, transport.Any, stamp, nil)
	}, func(context.Context, transport.Endpoint) error {
		return errors.Join(j.ends[0].Close(), j.ends[3].Close(), j.ends[1].Close())
	})
	checkReason(t, errs[2], 3, transport.ErrLeft, "so have all others")
	if errs[3] != nil {
		t.Error(errs[3])
	}
}

func testManyAtOnce(t *testing.T, start Start) {
	const n, each, takers = 3, 40, 4
	var seen sync.Map
	j := open(t, start, n)
	contents := func(i int) []byte {
		return bytes.Repeat([]byte{byte(i)}, []int{2, 8 << 10, 100 << 10}[i%3])
	}
	j.each(func(ctx context.Context, e transport.Endpoint) error {
		done := make(chan error, n+takers)
		for peer := range n {
			go func() {
				var errs error
				for i := range each {
					errs = errors.Join(errs, post(ctx, e, peer, stamp, contents(i)))
				}
				done <- errs
			}()
		}
		for range takers {
			go func() {
				var errs error
				into := make([]byte, 100<<10)
				for range n * each / takers {
					env, err := e.Recv(ctx, transport.Any, stamp, "bytes", into)
					if err != nil {
						errs = errors.Join(errs, err)
						break
					}
					i := int(into[0])
					if !bytes.Equal(into[:env.Size], contents(i)) {
						errs = errors.Join(errs, fmt.Errorf("letter %d of rank %d is torn", i, env.From))
					}
					if _, twice := seen.LoadOrStore([3]int{env.From, e.Rank(), i}, true); twice {
						errs = errors.Join(errs, fmt.Errorf("letter %d of rank %d came twice", i, env.From))
					}
				}
				done <- errs
			}()
		}
		var errs error
		for range cap(done) {
			errs = errors.Join(errs, <-done)
		}
		return errs
	})
	for rank, e := range j.ends {
		if env, found, err := e.Probe(j.ctx, transport.Any, stamp, false); found || err != nil {
			t.Errorf("rank %d holds a letter more than was posted, %+v, %v", rank, env, err)
		}
	}
}
