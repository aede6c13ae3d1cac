package chorale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/launch"
)

// A Profile says where the ranks of a job have spent their time: for every source line that
// calls a collective, or sends or receives tagged messages, how often and how long, how much
// of that was waiting for ranks that came later, and how even the ranks are. [RunProfile]
// fills it in. A program that is started by chorale run --profile, or with CHORALE_PROFILE
// set, needs none.
//
// Waiting is the part of a call before the last rank of its communicator had begun the
// same call. The rest is moving and combining. In a broadcast, and other calls that do not
// need all ranks, it is an upper bound of what was lost by late ranks.
//
// The first 64 calls of a communicator are timed, then about 16 of every doubling of their
// number, but at least one of 1024, and all that follow a call of 40 µs or more; a timed
// call stands for those before it that were not. So it is with the tagged messages of about
// one size. Calls that fail are not counted. A nonblocking or persistent call has the line
// that starts it.
type Profile struct{ records []profile.Record }

// WriteText writes the profile as a table of at most 80 columns. The lines that take the
// longest come first.
func (p *Profile) WriteText(w io.Writer) error {
	report := profile.Join(p.records)
	return report.WriteText(w)
}

// WriteJSON writes the profile as one line of JSON; docs/json.md has its shape.
func (p *Profile) WriteJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(profile.Join(p.records))
}

// RunProfile is [Run], and fills in p, also if a rank fails. Nobody else may use p
// meanwhile.
func RunProfile(ctx context.Context, n int, f Func, p *Profile) error {
	return run(ctx, n, f, recording{profile: p})
}

// newRecorders returns a recorder for each of n ranks, or as many nil ones if there is
// neither a profile nor metrics.
func (r *recording) newRecorders(n int) []*recorder {
	all := make([]*recorder, n)
	if r.profile == nil && !r.metrics {
		return all
	}
	waits := profile.NewWaits()
	for rank := range all {
		all[rank] = newRecorder()
		if r.metrics {
			all[rank].metrics = &liveMetrics{rank: rank, waits: waits, inSecond: map[string]int{}}
		}
	}
	return all
}

// fill fills in the records of a job that is over. P may be nil.
func (p *Profile) fill(recorders []*recorder) {
	if p == nil {
		return
	}
	p.records = nil
	for rank, r := range recorders {
		p.records = append(p.records, r.finished(rank, len(recorders)))
	}
}

// environmentRecorder returns the recorder of a rank that is a process, if the environment
// asks for a profile or for metrics, or nil.
func environmentRecorder() *recorder {
	target := metricsTarget()
	if os.Getenv(profile.Variable) == "" && target == "" {
		return nil
	}
	r := newRecorder()
	if target != "" {
		r.metrics = &liveMetrics{told: target == profile.Sent, inSecond: map[string]int{}}
	}
	return r
}

// runRecorded is runTraced, and leaves the records and the sums of the ranks in files if the
// environment asks for them.
func runRecorded(ctx context.Context, n int, policy stallPolicy, f Func) error {
	r := recording{metrics: metricsTarget() != ""}
	if target := metricsTarget(); filepath.IsAbs(target) {
		r.sums = target
	}
	name := os.Getenv(profile.Variable)
	if name == "" || name == profile.Sent {
		return runTraced(ctx, n, policy, f, r)
	}
	r.profile = new(Profile)
	err := runTraced(ctx, n, policy, f, r)
	for _, record := range r.profile.records {
		err = errors.Join(err, writeRecord(name, record))
	}
	return err
}

// handOnRecord hands on the record of this rank at the end of its part: to the launcher, or
// to the file that the environment names.
func (c *Comm) handOnRecord(env launch.JobEnv) {
	name := os.Getenv(profile.Variable)
	if name == "" {
		return
	}
	record := c.job.recorder.finished(c.job.place())
	if name == profile.Sent {
		if env.ReportProfile != nil {
			env.ReportProfile(record.Encode())
		}
		return
	}
	if err := writeRecord(name, record); err != nil {
		fmt.Fprintln(os.Stderr, "chorale: no profile:", err)
	}
}

// writeRecord writes the record of a rank to a file of its own.
func writeRecord(name string, record profile.Record) error {
	return os.WriteFile(name+"."+strconv.Itoa(record.Rank), record.Encode(), 0o666)
}
