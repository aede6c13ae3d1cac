package stall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/internal/ranklist"
	"github.com/chorale-go/chorale/transport"
)

// An Absence says why a rank says nothing. The greater ones explain more.
type Absence int

const (
	Present    Absence = iota
	NotJoined          // its process has not joined the job
	NoAnswer           // it does not answer, and nobody knows why
	Stopped            // its process is stopped, as by SIGSTOP or a debugger
	Dead               // its process has ended otherwise than by leaving
	HasLeft            // it has left the job: nothing is wrong with that
	NotReached         // its host does not answer
	Unasked            // it is in another process
)

// A Report is what all ranks of a job have said.
type Report struct {
	Ranks   []Rank
	Absent  []Absence     // why the rank has said nothing; Present if it has
	Details []string      // how a rank has ended; "" if it has not
	For     time.Duration // how long something has waited at least; 0 if that is not known
}

// New returns a report of a job, without what its ranks say.
func New(size int) *Report {
	return &Report{Ranks: make([]Rank, size), Absent: make([]Absence, size), Details: make([]string, size)}
}

// ReportOf returns a report of one rank of a job, of whose others nothing is known.
func ReportOf(rank, size int, r Rank) *Report {
	all := New(size)
	for other := range all.Absent {
		all.Absent[other] = Unasked
	}
	all.Ranks[rank], all.Absent[rank] = r, Present
	return all
}

// The bounds of the text.
const (
	groupsMax = 8 // groups of ranks
	pairsMax  = 6 // ranks of a group, with whom each waits for
)

// Text returns the report in lines. The last ones are the conclusion.
func (r *Report) Text() string {
	var b strings.Builder
	head := "what the ranks do:"
	if r.For > 0 {
		head = fmt.Sprintf("ranks have waited for %v or longer:", r.For)
	}
	b.WriteString(head)
	waits, others := r.waiting(), r.others()
	for i, g := range waits {
		if i == groupsMax {
			fmt.Fprintf(&b, "\n  and %d more groups of waiting ranks", len(waits)-i)
			break
		}
		b.WriteString("\n  " + g)
	}
	for i, g := range others {
		if i == groupsMax {
			fmt.Fprintf(&b, "\n  and %d more groups of ranks that do not wait", len(others)-i)
			break
		}
		b.WriteString("\n  " + g)
	}
	if cause := r.Cause(); cause != "" {
		b.WriteString("\n  " + cause)
	}
	return b.String()
}

// A groups are ranks with equal texts, in the order of their lowest ranks.
type groups struct {
	texts []string
	ranks map[string][]int
}

func (g *groups) add(text string, rank int) {
	if g.ranks == nil {
		g.ranks = make(map[string][]int)
	}
	if g.ranks[text] == nil {
		g.texts = append(g.texts, text)
	}
	if known := g.ranks[text]; len(known) == 0 || known[len(known)-1] != rank {
		g.ranks[text] = append(known, rank)
	}
}

// waiting returns the lines of the ranks that wait.
func (r *Report) waiting() (lines []string) {
	var calls groups
	pairs := make(map[string][]string)
	for rank := range r.Ranks {
		for i := range r.Ranks[rank].Waits {
			w := &r.Ranks[rank].Waits[i]
			call := w.describe()
			calls.add(call, rank)
			pairs[call] = append(pairs[call], w.pair(rank))
		}
	}
	for _, call := range calls.texts {
		line := subject(calls.ranks[call], "waits", "wait") + " in " + call + ":"
		for i, pair := range pairs[call] {
			if i == pairsMax {
				line += fmt.Sprintf(" and so on, for %d more", len(pairs[call])-i)
				break
			}
			if i > 0 {
				line += ";"
			}
			line += " " + pair
		}
		lines = append(lines, line)
	}
	for rank := range r.Ranks {
		if n := r.Ranks[rank].MoreWaits; n > 0 {
			lines = append(lines, fmt.Sprintf("rank %d waits in %d more calls", rank, n))
		}
	}
	return lines
}

// describe says in which call a rank waits, and where.
func (w *Wait) describe() (s string) {
	communicator := transport.Communicator(w.Context)
	switch {
	case w.Text != "":
		s = fmt.Sprintf("call %d of communicator %d, %q", w.Sequence, communicator, w.Text)
	case w.Tag == transport.Any:
		s = fmt.Sprintf("%s of any tag on communicator %d", cmp.Or(w.Name, w.Message, "a message"), communicator)
	default:
		s = fmt.Sprintf("%s of tag %d on communicator %d", cmp.Or(w.Name, w.Message, "a message"), w.Tag, communicator)
	}
	if w.At != "" {
		s += ", at " + w.At
	}
	return s
}

// pair says for whom a rank waits, and in which step.
func (w *Wait) pair(rank int) string {
	s := fmt.Sprintf("rank %d", rank)
	if w.Text != "" {
		s += fmt.Sprintf(" in step %d", w.Step+1)
	}
	if w.Peers == nil {
		return s + " for any rank"
	}
	return s + " for " + ranklist.Name(w.Peers)
}

// others returns the lines of the ranks that do not wait.
func (r *Report) others() (lines []string) {
	var states groups
	for rank := range r.Ranks {
		if text := r.state(rank); text != "" {
			states.add(text, rank)
		}
	}
	for _, text := range states.texts {
		ranks := states.ranks[text]
		one, several, _ := strings.Cut(text, "\x00")
		lines = append(lines, subject(ranks, one, several))
	}
	return lines
}

// state returns the predicate of a rank that does not wait, for one rank and, behind a
// zero byte, for several; "" if the rank waits.
func (r *Report) state(rank int) string {
	both := func(one, several, rest string) string { return one + rest + "\x00" + several + rest }
	me := &r.Ranks[rank]
	switch r.Absent[rank] {
	case NotJoined:
		return both("has", "have", " not joined the job")
	case NoAnswer:
		return both("does", "do", " not answer")
	case NotReached:
		return both("is", "are", " on a host that does not answer")
	case Stopped:
		return both("is", "are", " stopped (process state T, as after SIGSTOP)")
	case Dead:
		return both("has", "have", " ended: "+r.Details[rank])
	case HasLeft:
		return both("has", "have", " left the job")
	case Unasked:
		return both("is", "are", " in another process, which was not asked")
	}
	if len(me.Waits) > 0 {
		return ""
	}
	var b strings.Builder
	for i, c := range me.Calls {
		if i > 0 {
			b.WriteString(", and")
		}
		fmt.Fprintf(&b, " in %s", cmp.Or(c.Name, "a call"))
		if c.At != "" {
			fmt.Fprintf(&b, ", at %s", c.At)
		}
	}
	switch {
	case len(me.Calls) > 0:
		b.WriteString(", without waiting there")
	case me.Moves:
		b.WriteString(" in a call that makes progress")
	default:
		b.WriteString(" in no call")
	}
	if len(me.Goroutines) > 0 {
		b.WriteString("; its goroutines:")
		for _, s := range me.Goroutines {
			fmt.Fprintf(&b, "\n      [%s]", s.State)
			for _, f := range s.Frames {
				fmt.Fprintf(&b, "\n        %s  %s", f.Function, f.At)
			}
		}
		if me.More > 0 {
			fmt.Fprintf(&b, "\n      and %d more", me.More)
		}
	}
	return both("is", "are", b.String())
}

// subject begins a sentence with ranks, and the form of the verb that suits their number.
func subject(ranks []int, one, several string) string {
	verb := one
	if len(ranks) > 1 {
		verb = several
	}
	return ranklist.Name(ranks) + " " + verb
}

// Deadlock returns ranks that wait for each other, or nil if there are none.
func (r *Report) Deadlock() deadlock.Cycle {
	stalls := make([][]transport.Stall, len(r.Ranks))
	for rank := range r.Ranks {
		me := &r.Ranks[rank]
		for i := range me.Waits {
			if !me.Moves && me.MoreWaits == 0 {
				stalls[rank] = append(stalls[rank], me.Waits[i].stall())
			}
		}
	}
	return deadlock.Find(stalls)
}

// Confirm strikes out the waits that a later report does not have: their ranks make progress.
// What is left waited in all ranks at once, between the two reports. A rank that does not
// answer in the later one is taken to wait as before.
func (r *Report) Confirm(later *Report) {
	for rank := range r.Ranks {
		switch later.Absent[rank] {
		case Present:
			me, after := &r.Ranks[rank], later.Ranks[rank].Waits
			me.Waits = slices.DeleteFunc(me.Waits, func(w Wait) bool {
				over := !slices.ContainsFunc(after, func(a Wait) bool { return same(a.stall(), w.stall()) })
				me.Moves = me.Moves || over
				return over
			})
		case HasLeft, Dead:
			r.Ranks[rank], r.Absent[rank], r.Details[rank] = Rank{}, later.Absent[rank], later.Details[rank]
		}
	}
}

// Waits reports whether a rank waits for another one.
func (r *Report) Waits() bool {
	return slices.ContainsFunc(r.Ranks, func(me Rank) bool { return len(me.Waits) > 0 })
}

// Cause returns a sentence that names the likely cause of the wait, or says that nobody waits.
func (r *Report) Cause() string {
	if !r.Waits() {
		return "no rank waits for another one"
	}
	if d := r.Deadlock(); d != nil {
		return fmt.Sprintf("these ranks wait for each other, and cannot go on unless other goroutines of theirs make calls: %v. %s", d, d.Remedy())
	}
	return r.likelyCause()
}

// A suspicion is what a rank, for which others wait, does instead. The greater ones are the
// likelier causes.
type suspicion int

const (
	movesOn  suspicion = iota // it is in calls, and makes progress
	computes                  // it is in no call, and a goroutine of its runs
	idles                     // it is in no call, and its goroutines sleep
	missing                   // it has not joined, or does not answer
	stopped
	dead
)

func (r *Report) suspect(rank int) (suspicion, string) {
	me := &r.Ranks[rank]
	switch r.Absent[rank] {
	case Dead:
		return dead, "has ended: " + r.Details[rank]
	case Stopped:
		return stopped, "is stopped: SIGCONT lets it go on"
	case NotJoined:
		return missing, "has not joined the job"
	case NoAnswer, NotReached:
		return missing, "does not answer"
	case Unasked:
		return missing, "is in another process, which was not asked"
	case HasLeft:
		return missing, "has left the job"
	}
	runs := slices.ContainsFunc(me.Goroutines, func(s Stack) bool { return s.State == "running" || s.State == "runnable" })
	switch {
	case len(me.Calls) > 0 || me.Moves:
		return movesOn, "is in a call, and does not wait there"
	case runs:
		return computes, "is in no call: it computes"
	case len(me.Goroutines) > 0:
		return idles, fmt.Sprintf("is in no call: it waits for something else (%s)", me.Goroutines[0].State)
	}
	return idles, "is in no call"
}

// likelyCause names the likely cause, where no ranks wait for each other: of those that wait
// for nobody, and that others wait for, the one that says the least.
func (r *Report) likelyCause() string {
	waiters := make(map[int][]int)
	missed := make(map[int]string) // a call that the rank has not made
	anybody := []int{}             // ranks that wait for any other
	themselves := []int{}          // ranks that wait for themselves alone
	for rank := range r.Ranks {
		for i := range r.Ranks[rank].Waits {
			w := &r.Ranks[rank].Waits[i]
			if w.Peers == nil {
				anybody = append(anybody, rank)
			}
			if slices.Equal(w.Peers, []int{rank}) && !slices.Contains(themselves, rank) {
				themselves = append(themselves, rank)
			}
			for _, peer := range w.Peers {
				if peer < 0 || peer >= len(r.Ranks) || peer == rank || len(r.Ranks[peer].Waits) > 0 {
					continue
				}
				if n := len(waiters[peer]); n == 0 || waiters[peer][n-1] != rank {
					waiters[peer] = append(waiters[peer], rank)
				}
				if w.Text != "" && missed[peer] == "" {
					missed[peer] = fmt.Sprintf(", and has not made call %d of communicator %d", w.Sequence, transport.Communicator(w.Context))
				}
			}
		}
	}
	if len(waiters) == 0 {
		if len(anybody) > 0 {
			return ranklist.Name(anybody) + ": no rank sends the message that is waited for"
		}
		if len(themselves) > 0 {
			one := "waits for itself, and cannot go on unless another goroutine of its"
			several := "wait for themselves, and cannot go on unless other goroutines of theirs"
			return subject(themselves, one+" makes", several+" make") + " a call: want SendRecv, StartSend or StartRecv"
		}
		return "all ranks that are waited for wait as well, in the same calls: their messages are on the way"
	}
	worst, why := suspicion(-1), ""
	var causes []int
	for rank := range r.Ranks {
		if waiters[rank] == nil {
			continue
		}
		switch s, text := r.suspect(rank); {
		case s > worst:
			worst, why, causes = s, text, []int{rank}
		case s == worst:
			causes = append(causes, rank)
		}
	}
	if worst == computes || worst == idles {
		why += missed[causes[0]]
	}
	if len(causes) > 1 {
		return fmt.Sprintf("%s are the likely cause: rank %d %s; %s for it", ranklist.Name(causes), causes[0], why, subject(waiters[causes[0]], "waits", "wait"))
	}
	return fmt.Sprintf("rank %d is the likely cause: it %s; %s for it", causes[0], why, subject(waiters[causes[0]], "waits", "wait"))
}
