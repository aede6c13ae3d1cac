package chorale

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/kernel"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// A request is a collective call with its memory: what this rank has of the two
// buffers.
type request[T any] struct {
	callKey
	counts parts // where parts differ in length
	in     []T
	out    []T
	op     Op[T]
}

// fill fills a request in, but for the operation, piece by piece: a literal is made
// elsewhere, and copied.
func (r *request[T]) fill(collective sched.Collective, root, count int, out, in []T) {
	r.collective, r.root, r.count = collective, root, count
	r.out, r.in = out, in
}

// A callKey is all that a program, its layout and its operation depend on, but
// for parts that differ in length.
type callKey struct {
	collective  sched.Collective
	root, count int // count: elements of the vector, or of a part
	elem        reflect.Type
	op          kernel.Op
	custom      bool // the operation is the caller's function
	commutative bool
	uneven      uint64 // a digest of counts; 0 if parts are alike
	algorithm   string // as asked for; "" is for us to choose
	schedule    *sched.Schedule
}

// parts is how many elements each rank's part of a buffer has. Nil means that
// all have the same number.
type parts struct{ in, out []int }

func (p parts) equal(o parts) bool { return slices.Equal(p.in, o.in) && slices.Equal(p.out, o.out) }

// A call is a request worked out, without its memory.
type call struct {
	key       callKey
	counts    parts
	signature string
	algorithm string
	plan      *exec.Plan
	combiner  combiner // nil where nothing is combined
}

// do makes a collective call: it finds or works out the call, and carries it
// out.
func do[T any](ctx context.Context, c *Comm, r *request[T], options []Option) error {
	if !c.busy.CompareAndSwap(false, true) {
		return &Error{Call: r.collective.String(), Rank: c.rank, Step: -1, Peer: -1, Err: ErrBusy}
	}
	defer c.busy.Store(false)
	if c.freed {
		return &Error{Call: r.collective.String(), Rank: c.rank, Step: -1, Peer: -1, Err: fmt.Errorf("the communicator was freed: %w", ErrClosed)}
	}
	// A call that fails here counts, so that ranks which fail alike stay in
	// step, and others learn that this rank has gone on.
	signature := transport.Signature{Context: c.context, Sequence: c.sequence}
	c.sequence++

	chosen := choices(options)
	r.elem = reflect.TypeFor[T]()
	r.algorithm, r.schedule = chosen.algorithm, chosen.schedule
	r.callKey.op, r.custom, r.commutative = r.op.builtin, r.op.Combine != nil, r.op.Commutative
	call, err := find(c, r)
	if err != nil {
		return err
	}
	in, out := bytesOf(r.in), bytesOf(r.out)
	if exec.Overlap(in, out) && !call.plan.InPlace(in, out) {
		return c.wrong(r.collective.String(), "dst and src overlap: want the same memory, or none in common")
	}
	signature.Call = call.signature
	var op exec.Op
	if call.combiner != nil {
		if f, ok := call.combiner.(*funcCombiner[T]); ok {
			f.combine, f.panicked = r.op.Combine, nil
		}
		op = call.combiner.op()
	}
	if err := call.plan.Run(ctx, c.job.endpoint, signature, in, out, op); err != nil {
		return c.failed(r.collective.String(), err)
	}
	if chosen.stats != nil {
		s := call.plan.Stats()
		*chosen.stats = Stats{call.algorithm, s.Steps, s.Messages, s.Bytes}
	}
	if call.combiner != nil {
		if err := call.combiner.failure(); err != nil {
			return c.failed(r.collective.String(), err)
		}
	}
	return nil
}

// find returns the call that the communicator keeps, or works it out.
func find[T any](c *Comm, r *request[T]) (*call, error) {
	recent := c.recently(&r.callKey)
	if call := *recent; call != nil && call.key == r.callKey && call.counts.equal(r.counts) {
		return call, nil
	}
	if call := c.calls[r.callKey]; call != nil && call.counts.equal(r.counts) {
		*recent = call
		return call, nil
	}
	call, err := workOut(c, r)
	if err != nil {
		return nil, err
	}
	c.keep(call)
	return call, nil
}

// recently returns where the last call of a kind stands. To look there takes a
// seventh of the time that the map takes.
func (c *Comm) recently(key *callKey) **call {
	return &c.recent[uint(int(key.collective)*5+key.root)%uint(len(c.recent))]
}

// keep remembers a call in the place of the oldest.
func (c *Comm) keep(made *call) {
	if len(c.kept) < KeptCalls {
		c.kept = append(c.kept, made)
	} else {
		if old := c.kept[c.oldest]; c.calls[old.key] == old {
			delete(c.calls, old.key)
		}
		c.kept[c.oldest] = made
		c.oldest = (c.oldest + 1) % KeptCalls
	}
	c.calls[made.key] = made
	*c.recently(&made.key) = made
}

func workOut[T any](c *Comm, r *request[T]) (*call, error) {
	name := r.collective.String()
	if err := checkElement(r.elem); err != nil {
		return nil, c.wrong(name, "%w", err)
	}
	if r.root < 0 || r.root >= c.size {
		return nil, c.wrong(name, "no root %d: want 0 to %d", r.root, c.size-1)
	}
	made := &call{key: r.callKey, counts: parts{slices.Clone(r.counts.in), slices.Clone(r.counts.out)}}
	opName := ""
	if r.collective.Combines() {
		kernel := kernel.For(r.callKey.op, r.elem.Kind())
		opName = cmp.Or(r.callKey.op.String(), "func")
		switch {
		case kernel != nil:
			made.combiner = newBuiltin(kernel)
		case r.custom:
			made.combiner = newFunc[T]()
		default:
			return nil, c.wrong(name, "the operation has no Combine function")
		}
	}
	size := int(unsafe.Sizeof(*new(T)))
	s, err := c.schedule(r.callKey, r.counts, size)
	if err != nil {
		return nil, c.wrong(name, "%w", err)
	}
	in, out := exec.NewLayout(s, r.count, size), exec.NewLayout(s, r.count, size)
	if r.uneven != 0 {
		in, out = exec.UnevenLayout(s, r.counts.in, size), exec.UnevenLayout(s, r.counts.out, size)
	}
	made.algorithm = s.Algorithm
	made.plan = exec.Bind(s, c.rank, in, out, c.members)
	made.signature = describe(r.callKey, r.counts, opName, s.Algorithm)
	return made, nil
}

// schedule returns what the call runs.
func (c *Comm) schedule(key callKey, counts parts, size int) (*sched.Schedule, error) {
	s := key.schedule
	if s != nil {
		if s.Collective != key.collective || s.P != c.size || s.Root != key.root {
			return nil, fmt.Errorf("the schedule is for %v on %d ranks with root %d: want %v on %d ranks with root %d",
				s.Collective, s.P, s.Root, key.collective, c.size, key.root)
		}
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("the schedule is not right: %w", err)
		}
	} else {
		name := key.algorithm
		q := Query{
			Collective: key.collective.String(), Ranks: c.size, Bytes: key.bytes(c.size, counts, size),
			Ordered: key.collective.Combines() && !key.commutative, Uneven: key.uneven != 0, Transport: c.job.transport, Processors: c.job.processors,
		}
		if name == "" {
			choice, err := Choose(q)
			if err != nil {
				return nil, err
			}
			name = choice.Algorithm
		}
		whole := q.Bytes
		if key.perRank() {
			whole *= c.size
		}
		var err error
		if s, err = algo.New(key.collective, name, c.size, key.root, whole); err != nil {
			return nil, err
		}
	}
	switch {
	case s.Commutative && key.collective.Combines() && !key.commutative:
		return nil, fmt.Errorf("algorithm %s combines out of rank order, and the operation is not marked Commutative: choose another algorithm", s.Algorithm)
	case !s.Uneven && key.uneven != 0:
		return nil, fmt.Errorf("algorithm %s takes only parts that are all of one length: choose another algorithm", s.Algorithm)
	}
	return s, nil
}

// perRank reports whether the vector is one part per rank.
func (k callKey) perRank() bool { return (&sched.Schedule{Collective: k.collective}).Parted() }

// bytes returns the size by which an algorithm is chosen: that of the vector,
// or of an average part where it is one part per rank.
func (k callKey) bytes(ranks int, counts parts, size int) int {
	if k.uneven == 0 {
		return k.count * size
	}
	total := 0
	for _, n := range counts.in {
		total += n
	}
	return total * size / ranks
}

// describe says what was called, for comparing and for people.
func describe(key callKey, counts parts, op, algorithm string) string {
	s := key.collective.String()
	if key.collective.Combines() {
		s += " " + op
	}
	switch {
	case key.collective == sched.Barrier:
	case key.uneven == 0:
		s += fmt.Sprintf(" %v count=%d", key.elem, key.count)
	case key.collective == sched.AllToAll: // ranks do not know each other's counts
		s += fmt.Sprintf(" %v counts", key.elem)
	case len(counts.in) <= 16:
		s += fmt.Sprintf(" %v counts=%v", key.elem, counts.in)
	default:
		s += fmt.Sprintf(" %v counts=#%x", key.elem, key.uneven)
	}
	switch {
	case key.collective.Rooted():
		s += fmt.Sprintf(" root=%d", key.root)
	case key.collective == sched.Shift:
		s += fmt.Sprintf(" by=%d", key.root)
	}
	return s + " algorithm=" + algorithm
}
