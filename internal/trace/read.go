package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// A File is what Read finds in a timeline's file: the calls, as sim compares them.
type File struct {
	Ranks int
	Notes []string
	Calls []FileCall // by rank and beginning
}

// A FileCall is one rank's part in a call. Times are in nanoseconds.
type FileCall struct {
	Collective   string `json:"collective"`
	Algorithm    string `json:"algorithm"`
	Line         string `json:"line"`
	Type         string `json:"type"`
	Size         int    `json:"elementBytes"`
	Count        int    `json:"count"`
	Uneven       bool   `json:"uneven"`
	Root         int    `json:"root"`
	P            int    `json:"p"`
	Rank         int    `json:"rank"` // in the communicator
	JobRank      int    `json:"jobRank"`
	First        int    `json:"jobRankOf0"`
	Communicator uint64 `json:"communicator"`
	Number       uint32 `json:"number"`
	Failed       bool   `json:"failed"`

	Start, End int64
	Steps      []int64 // when each ended
}

// errNotReal is the error of a file that Write has not written.
var errNotReal = errors.New("not a timeline of a real run: want a file of chorale run --trace, RunTrace or CHORALE_TRACE")

// header is what a timeline says of itself.
type header struct {
	Format string   `json:"format"`
	Ranks  int      `json:"ranks"`
	Notes  []string `json:"notes"`
}

// Read reads the file of a timeline.
func Read(r io.Reader) (*File, error) {
	var in struct {
		OtherData   header `json:"otherData"`
		TraceEvents []struct {
			Ph   string          `json:"ph"`
			Tid  int             `json:"tid"`
			Ts   float64         `json:"ts"`
			Dur  float64         `json:"dur"`
			Cat  string          `json:"cat"`
			Args json.RawMessage `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotReal, err)
	}
	switch {
	case in.OtherData.Format == format:
	case strings.HasPrefix(in.OtherData.Format, "chorale "):
		return nil, fmt.Errorf("a timeline of another version, %q: want %q", in.OtherData.Format, format)
	default:
		return nil, errNotReal
	}
	f := &File{Ranks: in.OtherData.Ranks, Notes: in.OtherData.Notes}
	last := map[int]int{} // the last call of each track
	for _, e := range in.TraceEvents {
		start, end := nanoseconds(e.Ts), nanoseconds(e.Ts+e.Dur)
		switch i, known := last[e.Tid]; {
		case e.Ph != "X":
		case e.Cat == "call":
			c := FileCall{Start: start, End: end}
			if err := json.Unmarshal(e.Args, &c); err != nil {
				return nil, fmt.Errorf("a call in the timeline is wrong: %w", err)
			}
			if c.P < 1 || c.Rank < 0 || c.Rank >= c.P || c.End < c.Start || c.Size < 0 || c.Count < 0 {
				return nil, fmt.Errorf("a call in the timeline is wrong: rank %d of %d, %d elements of %d bytes", c.Rank, c.P, c.Count, c.Size)
			}
			last[e.Tid] = len(f.Calls)
			f.Calls = append(f.Calls, c)
		case e.Cat == "step" && known:
			f.Calls[i].Steps = append(f.Calls[i].Steps, end)
		}
	}
	return f, nil
}

// nanoseconds returns a time in microseconds, of three decimals.
func nanoseconds(micro float64) int64 { return int64(math.Round(micro * 1000)) }

// ReadNotes reads what the timeline in a file lacks.
func ReadNotes(r io.Reader) ([]string, error) {
	var in struct {
		OtherData header `json:"otherData"`
	}
	if err := json.NewDecoder(r).Decode(&in); err != nil || in.OtherData.Format != format {
		return nil, errNotReal
	}
	return in.OtherData.Notes, nil
}
