package match

import (
	"bytes"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// elem is the length of the elements, in bytes.
const elem = 4

// message returns n bytes, no two neighbors alike.
func message(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + 1)
	}
	return p
}

// adding returns a receive of n bytes that adds them to others. It fails the test
// where it is called with something else than whole elements: a last one that is short
// is whole.
func adding(t *testing.T, n int) *transport.Recv {
	held := message(n)
	into := make([]byte, n)
	return &transport.Recv{Into: into, Held: held, Elem: elem, Combine: func(into, held, incoming []byte) {
		if len(into) != len(incoming) || len(held) != len(incoming) || cap(into) != len(into) || len(incoming) == 0 {
			t.Errorf("%d bytes are combined with %d, into %d of %d", len(incoming), len(held), len(into), cap(into))
		}
		if len(incoming)%elem != 0 && len(incoming)%elem != n%elem {
			t.Errorf("%d bytes are combined, which are no whole elements", len(incoming))
		}
		for i := range into {
			into[i] += held[i] + incoming[i]
		}
	}}
}

// put puts a message into a receive, in pieces that end at the cuts.
func put(r *Recv, m []byte, cuts ...int) {
	at := 0
	for _, cut := range append(cuts, len(m)) {
		r.Put(bytes.Clone(m[at:cut]))
		at = cut
	}
}

// Every message of up to five elements, also one whose last element is short, in all
// two and in all three pieces.
func TestAMessageIsTheSameHoweverItIsCutIntoPieces(t *testing.T) {
	for n := range 5*elem + 1 {
		m := message(n)
		sum := make([]byte, n)
		for i := range sum {
			sum[i] = 2 * m[i]
		}
		for first := range n + 1 {
			for second := first; second <= n; second++ {
				plain := &Recv{Recv: &transport.Recv{Into: make([]byte, n)}}
				if put(plain, m, first, second); !bytes.Equal(plain.Into, m) || plain.Got != n {
					t.Fatalf("%d bytes in pieces up to %d and %d: got %v, %d bytes", n, first, second, plain.Into, plain.Got)
				}
				combined := &Recv{Recv: adding(t, n)}
				if put(combined, m, first, second); !bytes.Equal(combined.Into, sum) || combined.Got != n || len(combined.partial) != 0 {
					t.Fatalf("%d bytes in pieces up to %d and %d: combined to %v, want %v", n, first, second, combined.Into, sum)
				}
			}
		}
	}
}

func TestAMessageMayArriveByteByByte(t *testing.T) {
	m := message(3*elem + 1)
	r := &Recv{Recv: adding(t, len(m))}
	for i := range m {
		r.Put(m[i : i+1])
		if done := bytes.Count(r.Into, []byte{0}); i < len(m)-1 && done != len(m)-(i+1)/elem*elem {
			t.Errorf("after %d bytes, %d are not combined", i+1, done)
		}
	}
	for i := range m {
		if r.Into[i] != 2*m[i] {
			t.Fatalf("byte %d is %d, want %d", i, r.Into[i], 2*m[i])
		}
	}
}

// Elem may be 0 where bytes are combined one by one.
func TestAWholeMessageLandsAtOnce(t *testing.T) {
	for n := range 3 * elem {
		m := message(n)
		plain := &transport.Recv{Into: make([]byte, n)}
		if Land(plain, m); !bytes.Equal(plain.Into, m) {
			t.Errorf("%d bytes: got %v", n, plain.Into)
		}
		calls := 0
		combined := &transport.Recv{Into: make([]byte, n), Held: make([]byte, n), Combine: func(into, held, incoming []byte) {
			calls++
			copy(into, incoming)
		}}
		if Land(combined, m); !bytes.Equal(combined.Into, m) || calls != min(n, 1) {
			t.Errorf("%d bytes: %d calls of Combine, got %v", n, calls, combined.Into)
		}
		pieces := &Recv{Recv: combined}
		clear(combined.Into)
		if put(pieces, m, n/2); !bytes.Equal(combined.Into, m) {
			t.Errorf("%d bytes in two pieces: got %v", n, combined.Into)
		}
	}
}
