package sched

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/internal/ranklist"
)

// A Fault is an error in a schedule: what is wrong, and where. Check and Timeline
// return it, or several in [Faults]; use errors.As to get at the fields of the first.
type Fault struct {
	Line  int    // of the text that the schedule was read from, or 0
	Rank  int    // the rank, or -1 if the fault belongs to no rank
	Step  int    // the step of the rank's program, counted from 0, or -1 at its end; Error counts from 1
	Peer  int    // the rank at the other end of the message, or -1
	Block int    // the block, or -1
	What  string // what is wrong, in one line
	Ranks []int  // the ranks that end with the same fault, Rank among them, if there are several

	op operation // of the step
}

// An operation is one of a step's copies, sends or receives.
type operation struct {
	kind  opKind
	index int
}

type opKind uint8

const (
	noOp opKind = iota
	copyOp
	sendOp
	recvOp
)

// Error names the line, rank, step, peer and block, as far as known, and what is wrong.
func (f *Fault) Error() string {
	text := ""
	if f.Line > 0 {
		text = fmt.Sprintf("line %d: ", f.Line)
	}
	if f.Rank < 0 {
		return text + f.What
	}
	if len(f.Ranks) > 1 {
		text += ranklist.Name(f.Ranks) + " at the end"
	} else {
		text += rankInStep(f.Rank, f.Step)
	}
	if f.Peer >= 0 {
		text += fmt.Sprintf(", peer %d", f.Peer)
	}
	if f.Block >= 0 {
		text += fmt.Sprintf(", block %d", f.Block)
	}
	return text + ": " + f.What
}

func rankInStep(rank, step int) string {
	if step < 0 {
		return fmt.Sprintf("rank %d at the end", rank)
	}
	return fmt.Sprintf("rank %d in step %d", rank, step+1)
}

func faultf(rank, step, peer, block int, format string, args ...any) *Fault {
	return &Fault{Rank: rank, Step: step, Peer: peer, Block: block, What: fmt.Sprintf(format, args...)}
}

// by returns the fault with the operation of the step that it is about.
func (f *Fault) by(kind opKind, index int) *Fault {
	f.op = operation{kind, index}
	return f
}

// MaxFaults bounds the faults that are listed of a schedule.
const MaxFaults = 10

// Faults are the first faults of a schedule, two to MaxFaults. All are of the first kind
// of proof that fails, since later ones would only repeat them: see [Schedule.Check].
type Faults []*Fault

// FaultsOf returns the faults in an error, of [Schedule.Check] for one, or none.
func FaultsOf(err error) Faults {
	var all Faults
	if errors.As(err, &all) {
		return all
	}
	var one *Fault
	if errors.As(err, &one) {
		return Faults{one}
	}
	return nil
}

// At returns the faults at a step of a rank's program, which has so many steps. Those at the
// end of the rank are at its last step, or at step -1 if it has none.
func (l Faults) At(rank, step, steps int) (at Faults) {
	for _, f := range l {
		here := f.Step == step || f.Step < 0 && step == steps-1
		if here && (f.Rank == rank || slices.Contains(f.Ranks, rank)) {
			at = append(at, f)
		}
	}
	return at
}

// Error lists the faults in one line.
func (l Faults) Error() string {
	var all []string
	for _, f := range l {
		all = append(all, f.Error())
	}
	if len(l) == MaxFaults {
		all = append(all, fmt.Sprintf("no more than %d faults are listed", MaxFaults))
	}
	return strings.Join(all, "; ")
}

// Unwrap returns the faults.
func (l Faults) Unwrap() []error {
	var all []error
	for _, f := range l {
		all = append(all, f)
	}
	return all
}

// takes reports whether a fault at the end of a rank is listed: there is room, or it may
// be the same as one of another rank.
func (l Faults) takes(peer, block int) bool {
	return !l.full() || slices.ContainsFunc(l, func(f *Fault) bool { return f.Peer == peer && f.Block == block })
}

// atEnd adds a fault of a rank at its end, or the rank to a fault that is the same but for
// the rank.
func (l Faults) atEnd(rank, peer, block int, format string, args ...any) Faults {
	f := faultf(rank, -1, peer, block, format, args...)
	for _, same := range l {
		if same.Block == f.Block && same.Peer == f.Peer && same.What == f.What {
			if same.Ranks == nil {
				same.Ranks = []int{same.Rank}
			}
			same.Ranks = append(same.Ranks, rank)
			return l
		}
	}
	if l.full() {
		return l
	}
	return append(l, f)
}

func (l Faults) full() bool { return len(l) == MaxFaults }

// err returns nothing, the only fault, or all.
func (l Faults) err() error {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return l[0]
	}
	return l
}

// programLines are the lines of a text that have a rank's program.
type programLines struct {
	rank  int // the line "rank R"
	steps []stepLines
}

// stepLines are the lines of a step: "step", and its operations.
type stepLines struct {
	step                 int
	copies, sends, recvs []int
}

func (l *stepLines) empty() bool { return len(l.copies)+len(l.sends)+len(l.recvs) == 0 }

// located gives the faults of an error their lines in the text that the schedule was read
// from.
func (s *Schedule) located(err error) error {
	switch e := err.(type) {
	case *Fault:
		e.Line = s.lineOf(e)
	case Faults:
		for _, f := range e {
			f.Line = s.lineOf(f)
		}
	}
	return err
}

// lineOf returns the line of a fault's operation, or else that of its step or rank; 0 if
// the schedule was not read from a text.
func (s *Schedule) lineOf(f *Fault) int {
	program := s.lines[f.Rank]
	if program == nil {
		return 0
	}
	if f.Step < 0 || f.Step >= len(program.steps) {
		return program.rank
	}
	step := program.steps[f.Step]
	lines := map[opKind][]int{copyOp: step.copies, sendOp: step.sends, recvOp: step.recvs}[f.op.kind]
	if f.op.index >= len(lines) {
		return step.step
	}
	return lines[f.op.index]
}
