package profile

import (
	"encoding/json"
	"fmt"
	"sync"
)

// MetricsVariable has ranks sum up their calls while they run. Sent stands for the launcher,
// which is told the sums each second over the control connections; 1, for the
// program itself. Anything else is the file in which the process of all ranks of inproc
// leaves them as often.
const MetricsVariable = "CHORALE_METRICS"

// Totals are the sums of one rank since it joined. They only grow, but for Held.
type Totals struct {
	Rank     int              `json:"rank"`
	Size     int              `json:"size"`
	Host     string           `json:"host"`
	Calls    []CallTotals     `json:"calls"`
	Failures map[string]int64 `json:"failures"` // by call
	Held     map[string]int   `json:"held"`     // bytes, by what they are for
	Timed    []TimedCall      `json:"timed"`    // since the last totals; for the launcher, which joins those of all ranks
}

// CallTotals are the sums over the calls of a kind that have succeeded.
type CallTotals struct {
	Call    string   `json:"call"`              // the collective, or the kind of tagged message
	Message bool     `json:"message,omitempty"` // it is the latter
	Calls   int64    `json:"calls"`
	Bytes   int64    `json:"bytes"`             // that this rank has sent; of a receive, that it has received
	Time    float64  `json:"time"`              // seconds
	Waiting *float64 `json:"waiting,omitempty"` // seconds of the time, for ranks that came later; nil if the rank does not know
}

// A TimedCall is a sample of a collective.
type TimedCall struct {
	Call string `json:"n"`
	Sample
}

// The bounds of what a rank tells at a time.
const (
	// MaxTimed is how many timed calls a rank tells at a time.
	MaxTimed = 64
	// MaxCalls is how many kinds of calls there are at most.
	MaxCalls = 64
)

// DecodeTotals reads totals that a rank has told.
func DecodeTotals(text []byte) (t Totals, err error) {
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("not the metrics of a rank: %w", err)
	}
	if len(t.Calls) > MaxCalls || len(t.Failures) > MaxCalls || len(t.Held) > MaxCalls || len(t.Timed) > MaxTimed {
		return t, fmt.Errorf("not the metrics of a rank: %d kinds of calls, %d of failures, %d of memory, %d timed calls",
			len(t.Calls), len(t.Failures), len(t.Held), len(t.Timed))
	}
	return t, nil
}

// Waits finds out how long ranks have waited for others that came later to the same call,
// while the job runs, from those of the timed calls that all ranks of a call tell. Its
// methods may be called concurrently.
type Waits struct {
	mu      sync.Mutex
	pending map[call]*arrived
	order   []call // of pending, the oldest first
	shares  map[rankCall]*share
}

// maxPending is how many calls wait for further ranks to tell of them. The oldest is
// dropped.
const maxPending = 1 << 12

// A call is one call of a collective.
type call struct {
	context        uint64
	sequence       uint32
	members, first int // groups of different ranks may have one context
}

type arrived struct {
	samples []Sample
	ranks   []int
	names   []string
}

type rankCall struct {
	rank int
	call string
}

// A share is which part of its time a rank waits in a kind of call.
type share struct {
	timed, waited float64 // of the samples since the last sum
	part          float64 // of the last sum
	time, waiting float64 // sums
}

// NewWaits returns an empty Waits.
func NewWaits() *Waits {
	return &Waits{pending: map[call]*arrived{}, shares: map[rankCall]*share{}}
}

// Add adds a timed call of a rank.
func (w *Waits) Add(rank int, t TimedCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := call{t.Context, t.Sequence, t.Members, t.First}
	a := w.pending[key]
	if a == nil {
		if len(w.order) == maxPending {
			delete(w.pending, w.order[0])
			w.order = w.order[1:]
		}
		a = &arrived{}
		w.pending[key], w.order = a, append(w.order, key)
	}
	a.samples, a.ranks, a.names = append(a.samples, t.Sample), append(a.ranks, rank), append(a.names, t.Call)
	if len(a.ranks) < t.Members {
		return
	}
	last := a.samples[0].Arrival
	for _, s := range a.samples {
		last = max(last, s.Arrival)
	}
	for i, s := range a.samples {
		h := w.share(a.ranks[i], a.names[i])
		h.timed += s.Time
		h.waited += min(float64(last-s.Arrival)/1e9, s.Time)
	}
	a.samples, a.ranks, a.names = nil, nil, nil // it stays in order
}

func (w *Waits) share(rank int, name string) *share {
	key := rankCall{rank, name}
	h := w.shares[key]
	if h == nil {
		h = &share{}
		w.shares[key] = h
	}
	return h
}

// Sum returns how many seconds a rank has waited in a kind of call in which it has spent so
// many. Of the time since the last sum it is the part that was waiting in the samples since
// then, or, without any, in those before.
func (w *Waits) Sum(rank int, name string, time float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.share(rank, name)
	if time > h.time {
		if h.timed > 0 {
			h.part = h.waited / h.timed
			h.timed, h.waited = 0, 0
		}
		h.waiting += (time - h.time) * h.part
		h.time = time
	}
	return h.waiting
}
