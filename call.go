package chorale

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unique"
	"unsafe"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/internal/exec"
	"github.com/chorale-go/chorale/internal/kernel"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/transport"
)

// arguments are those of one collective call: its key, and this rank's memory.
type arguments[T any] struct {
	callKey
	counts partCounts
	in     []T
	out    []T
	op     Op[T]
}

// set sets all but the operation, field by field. A composite literal would be
// built elsewhere and copied.
func (a *arguments[T]) set(collective sched.Collective, root, count int, out, in []T) {
	a.collective, a.root, a.count = collective, root, count
	a.out, a.in = out, in
}

// A callKey is all that a program, its layout and its operation depend on, except
// for the counts of parts that differ in length.
type callKey struct {
	collective  sched.Collective
	root, count int // count: elements of the vector, or of one part
	elem        reflect.Type
	op          kernel.Op
	custom      bool // the operation is the caller's function
	commutative bool
	uneven      uint64 // a digest of the counts; 0 if all parts have the same length
	algorithm   string // that the caller names; "" leaves it to the selection
	schedule    *sched.Schedule
}

// partCounts is how many elements each rank's part of a buffer has. Nil means that
// all have the same number.
type partCounts struct{ in, out []int }

func (p partCounts) equal(o partCounts) bool {
	return slices.Equal(p.in, o.in) && slices.Equal(p.out, o.out)
}

// A call is compiled: it has all but the caller's memory.
type call struct {
	key       callKey
	counts    partCounts
	signature string
	algorithm string
	plan      *exec.Plan
	size      int     // bytes of the plan and the key, about
	op        exec.Op // the kernel; zero where nothing is combined, or by a callerOp
	callerOp  any     // a *callerOp[T] if the operation is the caller's function
	tally     *tally  // for a profile; else nil
	shape     int32   // of its timeline, in the tracer's table; 0 if it is not there
}

// is reports whether the call has a key and counts. It compares what mostly differs first,
// and calls no function where the compiler's comparison of two keys calls three.
func (c *call) is(key *callKey, counts *partCounts) bool {
	k := &c.key
	return k.root == key.root && k.count == key.count && k.collective == key.collective &&
		sameType(k.elem, key.elem) && k.op == key.op && k.custom == key.custom && k.commutative == key.commutative &&
		k.schedule == key.schedule && len(k.algorithm) == len(key.algorithm) && (k.algorithm == "" || k.algorithm == key.algorithm) &&
		k.uneven == key.uneven && (k.uneven == 0 || c.counts.equal(*counts))
}

// do makes a collective call. One that was made before in the same way, and that nobody
// records, needs no more than its compiled call.
func do[T any](ctx context.Context, c *Comm, a *arguments[T], options []Option) error {
	if ctx == nil {
		return c.rejectCallf(a.collective.String(), "%w", errNoContext)
	}
	if c == nil || !c.state.CompareAndSwap(idle, busy) {
		return c.unusable(a.collective.String())
	}
	a.elem = reflect.TypeFor[T]()
	a.callKey.op, a.custom, a.commutative = a.op.builtin, a.op.custom(), a.op.Commutative
	if len(options) == 0 && c.stats == nil && !a.custom {
		if call := *c.cache.slot(&a.callKey); call != nil && call.is(&a.callKey, &a.counts) {
			err := c.again(ctx, call, bytesOf(a.in), bytesOf(a.out))
			c.end()
			return err
		}
	}
	defer c.end()
	return doWith(ctx, c, a, options)
}

// nextSignature returns the signature of the next call, without its text. A call that fails
// from there on counts. So ranks that all fail stay in step, and other ranks notice that this
// one has moved on.
func (c *Comm) nextSignature() transport.Signature {
	signature := transport.Signature{Context: c.context, Sequence: c.sequence}
	c.sequence++
	return signature
}

// again makes a call that was compiled, and whose operation is built in.
func (c *Comm) again(ctx context.Context, call *call, in, out []byte) error {
	signature := c.nextSignature()
	signature.Call = call.signature
	if err := c.admit(call, &signature, in, out); err != nil {
		return err
	}
	if err := call.plan.Run(ctx, c.job.steps, signature, in, out, call.op); err != nil {
		return c.failed(call.key.collective.String(), signature, call.key.elem, err)
	}
	return nil
}

// admit returns why a call cannot be made with some memory, or at all.
func (c *Comm) admit(call *call, signature *transport.Signature, in, out []byte) error {
	if exec.Overlap(in, out) && !call.plan.InPlace(in, out) {
		return c.argumentErrorf(call.key.collective.String(), "dst and src overlap: want the same memory, or none in common")
	}
	if c.size == 1 && c.identity.revoked.Load() { // it would need no message
		return c.failed(call.key.collective.String(), *signature, call.key.elem, c.job.endpoint.Revoked(c.identity.number))
	}
	return nil
}

// doWith is do with options, a record of the call, an operation of the caller's, or a call
// that the cache may not have: then it compiles the call.
func doWith[T any](ctx context.Context, c *Comm, a *arguments[T], options []Option) error {
	signature := c.nextSignature()
	chosen := c.mergeOptions(options)
	timed := chosen.stats != nil && c.isTimed(chosen.stats, signature.Sequence)
	var start time.Time
	if timed {
		start = time.Now()
	}
	var traced *tracedCall
	if chosen.stats != nil {
		traced = c.trace(signature.Sequence)
	}
	a.algorithm, a.schedule = chosen.algorithm, chosen.schedule
	call := c.cache.find(&a.callKey, &a.counts)
	if call == nil {
		var err error
		if call, err = compile(c, a); err != nil {
			return err
		}
		if c.job.recorder != nil && !timed { // the first call of its kind is
			timed, start = true, time.Now()
		}
		c.cache.add(call)
	}
	signature.Call = call.signature
	in, out := bytesOf(a.in), bytesOf(a.out)
	err := c.admit(call, &signature, in, out)
	if err != nil {
		return err
	}
	exchanger, op := c.job.steps, call.op
	if traced != nil && !a.custom {
		exchanger, op = traced.around(call, op)
	}
	if a.custom {
		err = call.callerOp.(*callerOp[T]).run(ctx, c, call, traced, signature, in, out, a.op)
	} else if err = call.plan.Run(ctx, exchanger, signature, in, out, op); err != nil {
		err = c.failed(a.collective.String(), signature, a.elem, err)
	}
	if chosen.stats == nil {
		return err
	}
	if traced != nil {
		traced.end(c, call, err)
	}
	switch {
	case err != nil:
	case timed:
		c.finish(call, chosen.stats, signature.Sequence, start)
	case c.job.recorder != nil:
		c.count(call)
	}
	return err
}

// compile makes a call from its arguments, or returns an argument error.
func compile[T any](c *Comm, a *arguments[T]) (*call, error) {
	name := a.collective.String()
	if err := checkElement(a.elem); err != nil {
		return nil, c.argumentErrorf(name, "%w", err)
	}
	if a.root < 0 || a.root >= c.size {
		return nil, c.argumentErrorf(name, "no root %d: want 0 to %d", a.root, c.size-1)
	}
	compiled := &call{key: a.callKey, counts: partCounts{slices.Clone(a.counts.in), slices.Clone(a.counts.out)}}
	opName := ""
	if a.collective.Combines() {
		opName = a.callKey.op.String()
		if a.custom {
			opName = "func"
			compiled.callerOp = newCallerOp[T]()
		} else if f := kernelOf(a); f != nil {
			compiled.op = builtinOp(f)
		} else {
			return nil, c.argumentErrorf(name, "the operation has no function: want Combine or CombineSlice")
		}
	}
	size := int(unsafe.Sizeof(*new(T)))
	s, err := c.schedule(a.callKey, a.counts, size)
	if err != nil {
		return nil, c.argumentErrorf(name, "%w", err)
	}
	in, out := exec.NewLayout(s, a.count, size), exec.NewLayout(s, a.count, size)
	if a.uneven != 0 {
		in, out = exec.UnevenLayout(s, a.counts.in, size), exec.UnevenLayout(s, a.counts.out, size)
	}
	held := in.Range(s.Extent(sched.In, c.rank)).Len() + out.Range(s.Extent(sched.Out, c.rank)).Len()
	compiled.algorithm = s.Algorithm
	compiled.plan = exec.Compile(s, exec.Config{
		Rank: c.rank, Members: c.members, In: in, Out: out,
		Temporal: selection.Temporal(s.Collective, s.P, held),
		Deferred: a.custom, Memory: &c.memory,
	})
	// The ranks of a process share one text, so that to compare it is to compare addresses.
	compiled.signature = unique.Make(describe(a.callKey, a.counts, opName, s.Algorithm)).Value()
	compiled.size = compiled.plan.Size() + len(compiled.signature) + 8*(len(a.counts.in)+len(a.counts.out))
	return compiled, nil
}

// schedule returns the schedule that the call executes.
func (c *Comm) schedule(key callKey, counts partCounts, size int) (*sched.Schedule, error) {
	if s := key.schedule; s != nil {
		if s.Collective != key.collective || s.P != c.size || s.Root != key.root {
			return nil, fmt.Errorf("the schedule is for %v on %d ranks with root %d: want %v on %d ranks with root %d",
				s.Collective, s.P, s.Root, key.collective, c.size, key.root)
		}
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("the schedule is not right: %w", err)
		}
		return s, key.takes(s)
	}
	bytes := key.bytes(c.size, counts, size)
	choice, err := c.algorithm(key, bytes)
	if err != nil {
		return nil, err
	}
	if key.onePartPerRank() {
		bytes *= c.size
	}
	s, err := algo.New(key.collective, choice.Algorithm, c.size, key.root, bytes)
	if err == nil {
		err = key.takes(s)
	}
	if err != nil && choice.Forced != "" {
		err = fmt.Errorf("%s=%s: %w", selection.Environment, choice.Forced, err)
	}
	return s, err
}

// takes returns an error if a schedule is not for the operation or the parts of the call.
func (k callKey) takes(s *sched.Schedule) error {
	switch {
	case s.Commutative && k.collective.Combines() && !k.commutative:
		return fmt.Errorf("algorithm %s combines out of rank order, and the operation is not marked Commutative: choose another algorithm", s.Algorithm)
	case !s.Uneven && k.uneven != 0:
		return fmt.Errorf("algorithm %s takes only parts that are all of one length: choose another algorithm", s.Algorithm)
	}
	return nil
}

// algorithm returns the algorithm of a call, which its key names or else is chosen.
func (c *Comm) algorithm(key callKey, bytes int) (selection.Choice, error) {
	on := c.placement()
	if on.err != nil || key.algorithm != "" {
		return selection.Choice{Algorithm: selection.WithHosts(key.collective, key.algorithm, on.text)}, on.err
	}
	q := selection.Query{
		Collective: key.collective, Ranks: c.size, Bytes: bytes,
		Ordered: key.collective.Combines() && !key.commutative, Function: key.custom, Uneven: key.uneven != 0,
		Transport: c.job.config.Transport, Processors: c.job.config.Processors,
		Machine: c.job.machine,
	}
	if on.count > 1 {
		q = q.OnHosts(on.text, on.most)
	}
	return selection.Choose(q)
}

// onePartPerRank reports whether the vector is one part per rank.
func (k callKey) onePartPerRank() bool {
	return (&sched.Schedule{Collective: k.collective}).Partitioned()
}

// bytes returns the size by which an algorithm is chosen. It is that of the
// vector, or of an average part where the vector is one part per rank.
func (k callKey) bytes(ranks int, counts partCounts, size int) int {
	if k.uneven == 0 {
		return k.count * size
	}
	total := 0
	for _, n := range counts.in {
		total += n
	}
	return total * size / ranks
}

// describe states the call in words, which ranks compare and mismatch errors show.
func describe(key callKey, counts partCounts, op, algorithm string) string {
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
