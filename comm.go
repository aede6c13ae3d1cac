package chorale

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/exec"
	"github.com/chorale-go/chorale/internal/kernel"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// A Comm is one rank's view of a group of ranks that communicate with each
// other, and with nobody else.
//
// Collectives are called by all ranks of the group, in the same order. A Comm
// does one call at a time; ranks are concurrent with each other.
//
// A Comm keeps what it has worked out for the calls that it has seen: the
// program, and the scratch memory that the program needs. So the same call
// again allocates nothing. It keeps the [KeptCalls] most recently made ones.
type Comm struct {
	endpoint   transport.Endpoint
	rank, size int

	busy     atomic.Bool
	sequence uint32 // of the next call
	calls    map[callKey]*call
	kept     []*call // a ring, in the order of their making
	oldest   int
	last     *call // of the call before
}

// KeptCalls is the number of different calls that a communicator remembers.
const KeptCalls = 256

func newComm(ep transport.Endpoint) *Comm {
	return &Comm{endpoint: ep, rank: ep.Rank(), size: ep.Size(), calls: make(map[callKey]*call)}
}

// Rank returns this rank's number, 0 ≤ Rank < Size.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Comm) Size() int { return c.size }

// Close leaves the job. [Main] and [Run] do it when the rank's function
// returns; after [Join] it is the caller's.
func (c *Comm) Close() error { return c.endpoint.Close() }

// A callKey is all that a program, its layout and its operation depend on.
type callKey struct {
	collective  sched.Collective
	root, count int // count: elements of the vector, or of a part
	elem        reflect.Type
	op          kernel.Op
	custom      bool // the operation is the caller's function
	commutative bool
	algorithm   string // as asked for; "" is for us to choose
	schedule    *sched.Schedule
}

// A call is a callKey worked out.
type call struct {
	key       callKey
	signature string
	algorithm string
	plan      *exec.Plan
	combiner  combiner // nil where nothing is combined
}

// do makes a collective call: it checks what only it can check, finds or works
// out the call, and carries it out. In and out are what this rank has of the
// two buffers.
func do[T any](ctx context.Context, c *Comm, key callKey, in, out []T, op Op[T], options []Option) error {
	if !c.busy.CompareAndSwap(false, true) {
		return &Error{Call: key.collective.String(), Rank: c.rank, Step: -1, Peer: -1, Err: ErrBusy}
	}
	defer c.busy.Store(false)
	// A call that fails here counts, so that ranks which fail alike stay in
	// step, and others learn that this rank has gone on.
	signature := transport.Signature{Sequence: c.sequence}
	c.sequence++

	chosen := choices(options)
	key.elem = reflect.TypeFor[T]()
	key.algorithm, key.schedule = chosen.algorithm, chosen.schedule
	key.op, key.custom, key.commutative = op.builtin, op.Combine != nil, op.Commutative
	call, err := find[T](c, key)
	if err != nil {
		return err
	}
	from, to := bytesOf(in), bytesOf(out)
	if exec.Overlap(from, to) && !call.plan.InPlace(from, to) {
		return c.wrong(key.collective.String(), "dst and src overlap: want the same memory, or none in common")
	}
	signature.Call = call.signature
	var bound exec.Op
	if call.combiner != nil {
		if f, ok := call.combiner.(*funcCombiner[T]); ok {
			f.combine, f.panicked = op.Combine, nil
		}
		bound = call.combiner.op()
	}
	if err := call.plan.Run(ctx, c.endpoint, signature, from, to, bound); err != nil {
		return c.failed(key.collective.String(), err)
	}
	if chosen.stats != nil {
		s := call.plan.Stats()
		*chosen.stats = Stats{call.algorithm, s.Steps, s.Messages, s.Bytes}
	}
	if call.combiner != nil {
		if err := call.combiner.failure(); err != nil {
			return c.failed(key.collective.String(), err)
		}
	}
	return nil
}

// find returns the call that the communicator keeps for key, or works it out.
func find[T any](c *Comm, key callKey) (*call, error) {
	if c.last != nil && c.last.key == key {
		return c.last, nil
	}
	if call := c.calls[key]; call != nil {
		c.last = call
		return call, nil
	}
	call, err := workOut[T](c, key)
	if err != nil {
		return nil, err
	}
	c.keep(call)
	c.last = call
	return call, nil
}

// keep remembers a call in the place of the oldest.
func (c *Comm) keep(made *call) {
	if len(c.kept) < KeptCalls {
		c.kept = append(c.kept, made)
	} else {
		delete(c.calls, c.kept[c.oldest].key)
		c.kept[c.oldest] = made
		c.oldest = (c.oldest + 1) % KeptCalls
	}
	c.calls[made.key] = made
}

func workOut[T any](c *Comm, key callKey) (*call, error) {
	name := key.collective.String()
	if err := checkElement(key.elem); err != nil {
		return nil, c.wrong(name, "%w", err)
	}
	if key.root < 0 || key.root >= c.size {
		return nil, c.wrong(name, "no root %d: want 0 to %d", key.root, c.size-1)
	}
	made := &call{key: key}
	opName := ""
	if key.collective.Combines() {
		switch {
		case key.op != kernel.None:
			made.combiner = newBuiltin(kernel.For(key.op, key.elem.Kind()))
			opName = key.op.String()
		case key.custom:
			made.combiner = newFunc[T]()
			opName = "func"
		default:
			return nil, c.wrong(name, "the operation has no Combine function")
		}
	}
	size := int(unsafe.Sizeof(*new(T)))
	s, err := c.schedule(key, key.count*size)
	if err != nil {
		return nil, c.wrong(name, "%w", err)
	}
	if s.Commutative && made.combiner != nil && !key.commutative {
		return nil, c.wrong(name, "algorithm %s combines out of rank order, and the operation is not marked Commutative: choose another algorithm", s.Algorithm)
	}
	made.algorithm = s.Algorithm
	layout := exec.NewLayout(s, key.count, size)
	made.plan = exec.Bind(s, c.rank, layout, layout, nil)
	made.signature = describe(key, opName, s.Algorithm)
	return made, nil
}

// schedule returns what the call runs.
func (c *Comm) schedule(key callKey, bytes int) (*sched.Schedule, error) {
	if s := key.schedule; s != nil {
		if s.Collective != key.collective || s.P != c.size || s.Root != key.root {
			return nil, fmt.Errorf("the schedule is for %v on %d ranks with root %d: want %v on %d ranks with root %d",
				s.Collective, s.P, s.Root, key.collective, c.size, key.root)
		}
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("the schedule is not right: %w", err)
		}
		return s, nil
	}
	name := key.algorithm
	if name == "" {
		name = choose(key.collective, c.size, bytes, key.commutative)
	}
	return algo.New(key.collective, name, c.size, key.root, bytes)
}

// describe says what was called, for comparing and for people.
func describe(key callKey, op, algorithm string) string {
	s := key.collective.String()
	if key.collective.Combines() {
		s += " " + op
	}
	if key.collective != sched.Barrier {
		s += fmt.Sprintf(" %v count=%d", key.elem, key.count)
	}
	if key.collective.Rooted() {
		s += fmt.Sprintf(" root=%d", key.root)
	}
	return s + " algorithm=" + algorithm
}
