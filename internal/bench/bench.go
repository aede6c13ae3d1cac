package bench

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/chorale-go/chorale"
	"github.com/chorale-go/chorale/sched"
)

// A Cell is one call to measure, whatever the number of ranks.
type Cell struct {
	Collective sched.Collective
	Pattern    string // one of [Patterns], which is measured instead of a collective; "" for none
	Form       string // one of [Forms], in which the call is made; "" for the plain, blocking one
	Algorithm  string // as for [chorale.WithAlgorithm]; "" for the one that is selected
	// Root is the root of every call, if the collective has one, or RotatingRoot.
	Root int
	// Bytes is the size of one rank's message, as MPI counts it: one part, if a
	// vector has a part per rank (scatter, gather, allgather, reduce-scatter,
	// alltoall); otherwise the whole vector.
	Bytes int
}

// RotatingRoot stands for a root that moves to the next rank with every call.
const RotatingRoot = -1

// Name returns the name of the collective or the pattern, with the form, as in
// allreduce:nonblocking.
func (c Cell) Name() string {
	name := c.Pattern
	if name == "" {
		name = c.Collective.String()
	}
	if c.Form != "" {
		name += ":" + c.Form
	}
	return name
}

// Valid returns an error if the cell cannot be measured on any number of ranks.
func (c Cell) Valid() error {
	if err := c.validForm(); err != nil {
		return err
	}
	if size := c.element(); c.Bytes < 0 || c.Bytes%size != 0 {
		return fmt.Errorf("%s of %d bytes: want a multiple of %d", c.Name(), c.Bytes, size)
	}
	return nil
}

// MinRanks returns the fewest ranks among which the cell has something to measure. Of two
// ranks, a half is what a call costs a rank alone.
func (c Cell) MinRanks() int {
	switch {
	case c.Form == half, c.Pattern == "pingpong", c.Pattern == "exchange", c.Pattern == rate, c.Pattern == sendOverhead, c.Pattern == receiveOverhead:
		return 2
	}
	return 1
}

// element returns the size of an element.
func (c Cell) element() int {
	if c.Form == columns {
		return int(unsafe.Sizeof(float64(0)))
	}
	if c.Pattern == "" && c.Collective.Combines() {
		return int(unsafe.Sizeof(float32(0)))
	}
	return 1
}

// Memory returns the size in bytes of the buffers of p ranks. Each rank has the
// buffers of a root.
func (c Cell) Memory(p int) (bytes float64) {
	if c.Form == columns {
		return float64(p) * float64(c.Bytes) * float64(2*max(p, columnStride))
	}
	if c.Pattern != "" {
		in, out := slots(c.Pattern)
		return float64(p) * float64(in+out) * float64(c.Bytes)
	}
	shape := shapeOf(c.Collective, p, 0)
	blocks := shape.Extent(sched.In, 0).Len() + shape.Extent(sched.Out, 0).Len()
	return float64(p) * float64(blocks) * float64(c.longestPart())
}

// A Row is the result of a cell. Its JSON form is flat.
type Row struct {
	Call
	Iterations int  `json:"iterations"` // the number of calls that were timed
	Stable     bool `json:"stable"`     // the samples tell the median to 1 %, with a confidence of 95 %
	Times
	Switches *float64 `json:"switches,omitempty"` // context switches per call, of all ranks together; nil if unknown
	Verified bool     `json:"verified"`           // the results of the calls were right
	Overlap  *float64 `json:"overlap,omitempty"`  // of the form overlap: the part of the call, 0 to 1, that computing hides
	Ratios
	Prediction
}

// A Call is what a row measures.
type Call struct {
	Collective string `json:"collective"` // or the pattern
	Algorithm  string `json:"algorithm"`  // the one that ran; of a pattern, its calls
	Selected   string `json:"selected"`   // the one that runs if none is named
	Transport  string `json:"transport"`
	Alloc      bool   `json:"alloc,omitempty"` // the buffers are from chorale.Alloc
	Ranks      int    `json:"n"`
	Bytes      int    `json:"bytes"`
}

// Times summarize the samples of a row, in microseconds per call. A sample is the
// slowest rank's.
type Times struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Mean   float64 `json:"mean"`
}

// Ratios relate a row to the machine's limits and to other rows.
type Ratios struct {
	Bandwidth  float64 `json:"bandwidth"`  // Bytes over Median, of a rate those of all messages, in MB/s, that is, bytes per microsecond
	ToCopy     float64 `json:"toCopy"`     // Median over the time of a copy of Bytes; 0 if that was not measured
	ToExchange float64 `json:"toExchange"` // Median over the time of an exchange; 0 if that was not measured
	Winner     bool    `json:"winner"`     // the fastest of several algorithms for the same call
}

// A Prediction is the time of a row's call in a simulation of the machine, which the caller
// fills in. It is nil for what was not simulated.
type Prediction struct {
	Simulated   *float64 `json:"simulated,omitempty"`   // µs
	ToSimulated *float64 `json:"toSimulated,omitempty"` // Median over Simulated
}

// A Bench is one rank's part of a measurement. All ranks measure the same cells, in
// the same order. One goroutine per rank uses it.
type Bench struct {
	Comm      *chorale.Comm
	Transport string        // the name of the transport, for the rows
	Time      time.Duration // the most time for the samples of one cell
	Verify    bool          // compare the results of calls with the definition of the collective
	Alloc     bool          // the buffers are from chorale.Alloc

	memory memory
	loop   loop
	rate   float64 // of compute, in its iterations per µs; 0 before it is measured
}

// Reserve allocates the buffers for cells that will be measured. Without it, a cell
// that needs larger buffers than the cells before it allocates new ones.
func (b *Bench) Reserve(cells []Cell) error {
	for _, cell := range cells {
		if err := b.reserve(cell); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) reserve(cell Cell) error {
	if b.Alloc {
		b.memory.from = b.Comm
	}
	return b.memory.reserve(cell, b.Comm)
}

// Measure measures a cell. It is collective: it returns when every rank has measured
// the cell. It fails if the cell is invalid, if a call fails, or if a verified result
// is wrong; the communicator should then not be used again.
func (b *Bench) Measure(ctx context.Context, cell Cell) (Row, error) {
	if err := cell.Valid(); err != nil {
		return Row{}, err
	}
	if err := b.reserve(cell); err != nil {
		return Row{}, err
	}
	switch {
	case cell.Form != "":
		return b.measureForm(ctx, cell)
	case cell.Pattern == sendOverhead, cell.Pattern == receiveOverhead:
		return b.measureOverhead(ctx, cell)
	case cell.Pattern != "":
		return b.measure(ctx, cell, newPattern(b.Comm, cell, &b.memory))
	}
	return b.measure(ctx, cell, b.subjectOf(cell))
}

// subjectOf returns the call of a collective, for which there are buffers.
func (b *Bench) subjectOf(cell Cell) subject {
	if cell.Collective.Combines() {
		return newWork[float32](b.Comm, cell, &b.memory)
	}
	return newWork[byte](b.Comm, cell, &b.memory)
}

// A subject is what a cell measures, on one rank.
type subject interface {
	// run makes the call once, and verify also compares its result.
	run(ctx context.Context) error
	verify(ctx context.Context) error
	// first returns how many calls are unlike the ones before: the first with each root.
	first() int
	// algorithm makes the call, and returns what ran, and what runs if no algorithm is named.
	algorithm(ctx context.Context) (ran, selected string, err error)
}

func (b *Bench) measure(ctx context.Context, cell Cell, w subject) (Row, error) {
	check := w.verify
	if !b.Verify {
		check = w.run
	}
	for range w.first() {
		if err := check(ctx); err != nil {
			return Row{}, err
		}
	}
	algorithm, selected, err := w.algorithm(ctx)
	if err != nil {
		return Row{}, err
	}
	s, err := b.loop.run(ctx, b.Comm, b.Time, w.run)
	if err != nil {
		return Row{}, err
	}
	switches, err := b.switches(ctx, s)
	if err != nil {
		return Row{}, err
	}
	if err := check(ctx); err != nil {
		return Row{}, err
	}
	return Row{
		Call: Call{
			Collective: cell.Name(),
			Algorithm:  algorithm,
			Selected:   selected,
			Transport:  b.Transport,
			Alloc:      b.Alloc,
			Ranks:      b.Comm.Size(),
			Bytes:      cell.Bytes,
		},
		Iterations: s.iterations(),
		Stable:     s.stable,
		Times:      summarize(s.samples),
		Switches:   switches,
		Verified:   b.Verify,
	}, nil
}

// switches returns the context switches of a call, of the processes of all ranks together,
// or nil where the system does not count them.
func (b *Bench) switches(ctx context.Context, s sampling) (*float64, error) {
	mine, all := []int64{s.switches}, []int64{0}
	if b.Transport == "inproc" && b.Comm.Rank() > 0 {
		mine[0] = 0 // rank 0 counts those of the process
	}
	if err := chorale.AllReduce(ctx, b.Comm, all, mine, chorale.Sum); err != nil {
		return nil, err
	}
	if _, known := contextSwitches(); !known {
		return nil, nil
	}
	n := float64(all[0]) / float64(s.iterations())
	return &n, nil
}
