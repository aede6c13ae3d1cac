// Package profile says where the ranks of a job spend their time: what one rank records,
// and the report on all of them.
package profile

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Variable names the files in which ranks leave their records: FILE.RANK for each. Sent
// stands for the launcher, which gets them over the control connections.
const (
	Variable = "CHORALE_PROFILE"
	Sent     = "-"
)

// A Place is a call in a program. The zero File stands for all places that a rank has no
// room for.
type Place struct {
	File string `json:"file"` // with its folder, as in "train/main.go"; "" for the others
	Line int    `json:"line"`
	Call string `json:"call"` // the collective, or the kind of tagged message
}

// A Row is what a rank has spent in a place.
type Row struct {
	Place
	Algorithm string  `json:"algorithm"` // that the last call ran; "" for a message
	Explain   string  `json:"explain"`   // the command that explains the last call; "" for a message, and where there is none
	Calls     int64   `json:"calls"`
	Bytes     int64   `json:"bytes"` // that this rank has sent; of a receive, that it has received
	Time      float64 `json:"time"`  // seconds
}

// A Sample is one timed call of a collective. Ranks time the same calls.
type Sample struct {
	Context  uint64  `json:"c"` // the communicator
	Sequence uint32  `json:"s"` // the call's number there
	Row      int     `json:"r"`
	Arrival  int64   `json:"a"` // in Unix time, nanoseconds
	Time     float64 `json:"t"` // until its end, seconds
	Members  int     `json:"m"` // ranks of the communicator
	First    int     `json:"f"` // the job's rank of its rank 0
}

// A Record is what one rank has to say.
type Record struct {
	Rank    int      `json:"rank"`
	Size    int      `json:"size"`
	Host    string   `json:"host"`
	Elapsed float64  `json:"elapsed"` // seconds from the beginning of the rank's part to its end
	Rows    []Row    `json:"rows"`
	Samples []Sample `json:"samples"`
}

// maxText bounds the text of a record, in bytes.
const maxText = 16 << 20

// Decode reads a record that Encode has written.
func Decode(record []byte) (r Record, err error) {
	z, err := gzip.NewReader(bytes.NewReader(record))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxText)).Decode(&r)
	}
	if err != nil {
		return r, fmt.Errorf("not a profile: %w", err)
	}
	for _, s := range r.Samples {
		if s.Row < 0 || s.Row >= len(r.Rows) {
			return r, fmt.Errorf("not a profile: a sample of row %d of %d", s.Row, len(r.Rows))
		}
	}
	return r, nil
}

// Encode returns the record as compressed JSON.
func (r *Record) Encode() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_ = json.NewEncoder(z).Encode(r) // it has numbers and strings alone, and a buffer takes all
	_ = z.Close()                    // the buffer takes that, too
	return b.Bytes()
}

// A Report is on all ranks whose records there are.
type Report struct {
	Ranks    int      `json:"ranks"`    // of the job
	Records  int      `json:"records"`  // ranks that have told
	Elapsed  float64  `json:"elapsed"`  // seconds, of the rank that took longest
	Time     float64  `json:"time"`     // seconds in calls, the mean of the ranks
	Waiting  *float64 `json:"waiting"`  // seconds of it for ranks that came later; null if it is not known
	Measured float64  `json:"measured"` // the part of the calls that were timed, 0 to 1
	Copy     *float64 `json:"copy"`     // bytes that this machine copies in a second; null if it was not measured
	Lines    []Line   `json:"lines"`
}

// A Line is a place in the program, over all ranks.
type Line struct {
	Row                // calls and bytes are of all ranks, the time is the mean of the ranks
	Waiting   *float64 `json:"waiting"`   // seconds of the time, before the last rank came; null for messages, and if it is not known
	Late      *Late    `json:"late"`      // for which rank most of it was; null if nobody waited
	Balance   float64  `json:"balance"`   // the longest time of a rank over the mean
	Bandwidth float64  `json:"bandwidth"` // bytes that a rank sends per second that it does not wait
}

// A Late is the rank for which others have waited the longest, and its share of their waiting.
type Late struct {
	Rank  int     `json:"rank"`
	Share float64 `json:"share"` // 0 to 1
}

// Join makes the report from the records of ranks, in any order.
func Join(records []Record) Report {
	report := Report{Records: len(records), Lines: []Line{}}
	late, hosts := lateness(records), map[string]bool{}
	type sums struct {
		Line
		longest, timed, waited float64
		samples                int
		waitedFor              map[int]float64 // by rank
	}
	all := map[Place]*sums{}
	timed, calls := 0.0, 0.0
	for i := range records {
		r := &records[i]
		hosts[r.Host] = true
		report.Ranks, report.Elapsed = max(report.Ranks, r.Size), max(report.Elapsed, r.Elapsed)
		times := map[Place]float64{}
		for _, row := range r.Rows {
			s := all[row.Place]
			if s == nil {
				s = &sums{Line: Line{Row: Row{Place: row.Place}}, waitedFor: map[int]float64{}}
				all[row.Place] = s
			}
			s.Algorithm, s.Explain = cmp.Or(s.Algorithm, row.Algorithm), cmp.Or(s.Explain, row.Explain)
			s.Calls, s.Bytes, s.Time = s.Calls+row.Calls, s.Bytes+row.Bytes, s.Time+row.Time
			times[row.Place] += row.Time
			if row.Algorithm != "" {
				calls += float64(row.Calls)
			}
		}
		for place, t := range times {
			all[place].longest = max(all[place].longest, t)
		}
		for k, sample := range r.Samples {
			s := all[r.Rows[sample.Row].Place]
			timed++
			if w := late[i][k]; w.known {
				s.timed, s.waited, s.samples = s.timed+sample.Time, s.waited+w.waited, s.samples+1
				s.waitedFor[w.last] += w.waited
			}
		}
	}
	n := float64(max(len(records), 1))
	report.Measured = 1
	if calls > 0 {
		report.Measured = min(1, timed/calls)
	}
	waiting, oneClock := 0.0, len(hosts) <= 1
	for _, s := range all {
		total := s.Time
		s.Time /= n
		if total > 0 {
			s.Balance = s.longest / s.Time
		}
		moving := total
		if oneClock && s.samples > 0 {
			w := 0.0
			if s.timed > 0 {
				w = s.Time * s.waited / s.timed
			}
			s.Waiting, moving = &w, total-w*n
			s.Late = latest(s.waitedFor, s.waited)
			waiting += w
		}
		if moving > 0 {
			s.Bandwidth = float64(s.Bytes) / moving
		}
		report.Time += s.Time
		report.Lines = append(report.Lines, s.Line)
	}
	if oneClock {
		report.Waiting = &waiting
	}
	slices.SortFunc(report.Lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.File, b.File), cmp.Compare(a.Row.Line, b.Row.Line), cmp.Compare(a.Call, b.Call))
	})
	return report
}

// latest returns the rank for which others have waited the longest, or nil.
func latest(waitedFor map[int]float64, waited float64) (late *Late) {
	for rank, w := range waitedFor {
		if share := w / waited; waited > 0 && (late == nil || share > late.Share || share == late.Share && rank < late.Rank) {
			late = &Late{rank, share}
		}
	}
	return late
}

// A wait is how long a rank was in a call before the last rank came to it.
type wait struct {
	waited float64
	last   int  // the last rank
	known  bool // all ranks of the call have timed it
}

// lateness returns the wait of each sample of each record.
func lateness(records []Record) [][]wait {
	type key struct {
		context        uint64
		sequence       uint32
		members, first int // groups of different ranks may have one context
	}
	type arrivals struct {
		n    int
		last int64
		rank int // that came last
	}
	calls := map[key]arrivals{}
	for _, r := range records {
		for _, s := range r.Samples {
			k := key{s.Context, s.Sequence, s.Members, s.First}
			a := calls[k]
			if a.n == 0 {
				a.last = math.MinInt64
			}
			if a.n++; s.Arrival > a.last {
				a.last, a.rank = s.Arrival, r.Rank
			}
			calls[k] = a
		}
	}
	all := make([][]wait, len(records))
	for i, r := range records {
		all[i] = make([]wait, len(r.Samples))
		for k, s := range r.Samples {
			a := calls[key{s.Context, s.Sequence, s.Members, s.First}]
			all[i][k] = wait{min(float64(a.last-s.Arrival)/1e9, s.Time), a.rank, a.n == s.Members}
		}
	}
	return all
}
