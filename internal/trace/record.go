// Package trace has the timelines of real runs: what one rank records, in bounded memory,
// the timeline of all ranks, and its file, which is in Chrome's Trace Event Format.
package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/chorale-go/chorale/internal/clock"
)

const (
	// Variable names the file of the timeline. Of ranks that are processes, each leaves what
	// it has recorded in FILE.RANK. Sent stands for the launcher, which gets it over the
	// control connections.
	Variable = "CHORALE_TRACE"
	Sent     = "-"
	// BufferVariable is how many bytes a rank keeps.
	BufferVariable = "CHORALE_TRACE_BUFFER"
)

// A Kind is what an event is.
type Kind uint8

// The kinds of events. The steps of a call follow it.
const (
	Call Kind = iota
	Step
	Send
	Recv
	StartSend
	StartRecv
	Wait
	kinds
)

func (k Kind) String() string {
	return [kinds]string{"call", "step", "send", "recv", "start send", "start recv", "wait"}[k]
}

// An Event is what a rank has done for some time, in 64 bytes. Times are in nanoseconds
// since the rank began to record.
type Event struct {
	Kind     Kind   `json:"k,omitempty"`
	Failed   bool   `json:"f,omitempty"`
	Group    uint16 `json:"g,omitempty"` // the number of the endpoint, see launch.JobEnv
	Place    int32  `json:"l,omitempty"` // the line, an index in Record.Places
	Shape    int32  `json:"p,omitempty"` // of a call, an index in Record.Shapes
	Peer     int32  `json:"r,omitempty"` // of a message, the job's rank; −1 if it is not known
	Context  uint32 `json:"c,omitempty"` // the communicator, of the endpoint
	Sequence uint32 `json:"q,omitempty"` // of a call: its number there
	Start    int64  `json:"s"`
	End      int64  `json:"e"`
	Tag      int64  `json:"t,omitempty"` // of a message
	// Amount is the bytes of a message, and of a step the nanoseconds in which operands were
	// combined.
	Amount int64 `json:"a,omitempty"`
	// Number counts the messages of one sender, receiver, communicator and tag from 1 on; 0 if
	// messages were left out before.
	Number int64 `json:"n,omitempty"`
}

// Communicator returns the communicator's number, of all in the job.
func (e *Event) Communicator() uint64 { return uint64(e.Group)<<32 | uint64(e.Context) }

// EventBytes is what an event takes.
const EventBytes = 64

// MaxBuffer is how many bytes of events a rank keeps at most.
const MaxBuffer = 64 << 20

// A Place is a line of the program.
type Place struct {
	File string `json:"file"` // with its folder, as in "train/main.go"; "" if it is not known
	Line int    `json:"line"`
}

// A Shape is what all runs of one compiled call have in common.
type Shape struct {
	Collective string     `json:"collective"`
	Algorithm  string     `json:"algorithm"`
	Type       string     `json:"type"`             // of elements
	Size       int        `json:"size"`             // bytes of an element
	Count      int        `json:"count"`            // elements of the vector, or of one part
	Bytes      int        `json:"bytes"`            // that this rank sends
	Uneven     bool       `json:"uneven,omitempty"` // the parts differ in length
	Root       int        `json:"root"`
	P          int        `json:"p"`     // ranks of the communicator
	Rank       int        `json:"rank"`  // this one's there
	First      int        `json:"first"` // the job's rank of its rank 0
	Steps      []Exchange `json:"steps"`
}

// An Exchange is the messages of a step.
type Exchange struct {
	Sends []Message `json:"sends,omitempty"`
	Recvs []Message `json:"recvs,omitempty"`
}

// A Message is one end of a message of a step.
type Message struct {
	Peer  int `json:"peer"` // the job's rank
	Bytes int `json:"bytes"`
}

// A Record is what one rank has recorded.
type Record struct {
	Rank    int            `json:"rank"`
	Size    int            `json:"size"`
	Host    string         `json:"host"`    // whose clock it has
	Begin   int64          `json:"begin"`   // the time of that clock when the rank began
	Offsets []clock.Offset `json:"offsets"` // to the clock of the launcher's host, earlier and later; empty if unknown
	Places  []Place        `json:"places"`
	Shapes  []Shape        `json:"shapes"`
	Events  []Event        `json:"events"`  // in the order of their ends, but for steps
	Dropped int64          `json:"dropped"` // the oldest events, for which there was no room
	Skipped int64          `json:"skipped"` // short calls and messages that were not recorded
}

// maxText bounds the text of a record, in bytes.
const maxText = 512 << 20

// Encode returns the record as compressed JSON.
func (r *Record) Encode() []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // there is such a level
	_ = json.NewEncoder(z).Encode(r)                // it has numbers and strings alone, and a buffer takes all
	_ = z.Close()                                   // the buffer takes that, too
	return b.Bytes()
}

// Decode reads a record that Encode has written.
func Decode(record []byte) (r Record, err error) {
	z, err := gzip.NewReader(bytes.NewReader(record))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxText)).Decode(&r)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return r, fmt.Errorf("not what a rank has recorded: %w", err)
	}
	return r, nil
}

// check returns an error unless all indices are within their tables.
func (r *Record) check() error {
	if r.Rank < 0 || r.Rank >= r.Size {
		return fmt.Errorf("rank %d of %d", r.Rank, r.Size)
	}
	for _, e := range r.Events {
		if e.Kind >= kinds || e.Place < 0 || int(e.Place) >= len(r.Places) || e.Kind == Call && (e.Shape < 0 || int(e.Shape) >= len(r.Shapes)) {
			return fmt.Errorf("an event of kind %d, place %d, shape %d", e.Kind, e.Place, e.Shape)
		}
	}
	return nil
}
