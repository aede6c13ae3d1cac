// Package failure puts the errors of a job's ranks together, so that a person reads each
// once: an error that several ranks have, and the calls of ranks that have called different
// things.
package failure

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/internal/ranklist"
)

// A Failure is the error with which the program of a rank ends.
type Failure struct {
	Text    string `json:"text"`
	Details string `json:"details,omitempty"` // as the stack of a panic, which may differ from rank to rank
	Call    *Call  `json:"call,omitempty"`    // the collective that failed; nil if it was none
	Peer    int    `json:"peer"`              // the rank because of which it failed, or -1
	Theirs  *Call  `json:"theirs,omitempty"`  // what that rank called, where that was another call
}

// A Call is a collective, as a rank has called it.
type Call struct {
	Context  uint32 `json:"context"`
	Sequence uint32 `json:"sequence"`
	Text     string `json:"text"`            // as in transport.Signature
	Where    string `json:"where,omitempty"` // the line of the program; "" if it is not known
}

// A Shared is an error of some ranks.
type Shared struct {
	Ranks   []int // in ascending order
	Text    string
	Details string // of the first of these ranks
	Named   bool   // the text names the ranks
}

// Share returns the errors of a job in the order of the lowest rank of each. Failures has
// that of each rank; nil for a rank without one.
func Share(failures []*Failure) (all []Shared) {
	all = mismatches(failures)
	told := make([]bool, len(failures))
	for _, s := range all {
		for _, rank := range s.Ranks {
			told[rank] = true
		}
	}
	known := make(map[string]int)
	for rank, f := range failures {
		if f == nil || told[rank] {
			continue
		}
		i, ok := known[f.Text]
		if !ok {
			i = len(all)
			known[f.Text] = i
			all = append(all, Shared{Text: f.Text, Details: f.Details})
		}
		all[i].Ranks = append(all[i].Ranks, rank)
	}
	slices.SortStableFunc(all, func(a, b Shared) int { return a.Ranks[0] - b.Ranks[0] })
	return all
}

// mismatches returns an error for each context in which ranks have called different things.
// Its ranks are those with an error: of the mismatch, or because one of the others gave up
// for it.
func mismatches(failures []*Failure) (all []Shared) {
	var contexts []uint32
	for _, f := range failures {
		if f != nil && f.Theirs != nil && f.Call != nil && !slices.Contains(contexts, f.Call.Context) {
			contexts = append(contexts, f.Call.Context)
		}
	}
	for _, context := range contexts {
		all = append(all, mismatch(failures, context))
	}
	return all
}

func mismatch(failures []*Failure, context uint32) (s Shared) {
	calls := make(map[int]Call)
	own := make(map[int]bool)
	add := func(rank int) {
		own[rank], calls[rank] = true, *failures[rank].Call
	}
	for rank, f := range failures {
		if f != nil && f.Theirs != nil && f.Call != nil && f.Call.Context == context {
			add(rank)
			if f.Peer >= 0 && f.Peer < len(failures) && !own[f.Peer] {
				calls[f.Peer] = *f.Theirs
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for rank, f := range failures {
			if f == nil || own[rank] || f.Call == nil || f.Call.Context != context {
				continue
			}
			if _, ok := calls[f.Peer]; ok && f.Peer != rank {
				add(rank)
				changed = true
			} else if theirs, ok := calls[rank]; ok && theirs.Text == f.Call.Text && theirs.Sequence == f.Call.Sequence {
				add(rank)
				changed = true
			}
		}
	}
	for rank := range own {
		s.Ranks = append(s.Ranks, rank)
	}
	slices.Sort(s.Ranks)
	s.Named = true
	s.Text = prefix(failures, s.Ranks) + "ranks differ in what they call: " + describe(calls)
	for _, rank := range s.Ranks {
		if s.Details = failures[rank].Details; s.Details != "" {
			break
		}
	}
	return s
}

// prefix returns what the program itself has put before the error, if all ranks have put the
// same, and the library's name.
func prefix(failures []*Failure, ranks []int) string {
	const library = "chorale: "
	before, _, ok := strings.Cut(failures[ranks[0]].Text, library)
	for _, rank := range ranks {
		if b, _, found := strings.Cut(failures[rank].Text, library); !found || b != before {
			ok = false
		}
	}
	if !ok {
		return library
	}
	return before + library
}

// A group is ranks that have made one call at one line.
type group struct {
	ranks []int
	Call
	short, algorithm string
}

// describe returns the calls of some ranks in words.
func describe(calls map[int]Call) string {
	var groups []*group
	var ranks []int
	for rank := range calls {
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	for _, rank := range ranks {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.Call == calls[rank] })
		if i < 0 {
			i = len(groups)
			g := &group{Call: calls[rank]}
			g.short, g.algorithm = Words(g.Text)
			groups = append(groups, g)
		}
		groups[i].ranks = append(groups[i].ranks, rank)
	}
	first := groups[0]
	sequences := slices.ContainsFunc(groups, func(g *group) bool { return g.Sequence != first.Sequence })
	algorithms := slices.ContainsFunc(groups, func(g *group) bool {
		return slices.ContainsFunc(groups, func(o *group) bool { return g.short == o.short && g.algorithm != o.algorithm })
	})
	var parts []string
	for i, g := range groups {
		s := ranklist.Name(g.ranks)
		if i == 0 {
			s += " called"
		}
		s += " " + g.short
		if algorithms && g.algorithm != "" {
			s += " by algorithm " + g.algorithm
		}
		if sequences {
			s += fmt.Sprintf(" as call %d", g.Sequence)
		}
		if g.Where != "" {
			s += " (" + g.Where + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// call is the text of a collective: its name, and unless it is a barrier the operation, the
// type, the counts and the root.
var call = regexp.MustCompile(`^([a-z-]+)(?: (.+) (count=\d+|counts(?:=\[[\d ]*\]|=#[0-9a-f]+)?))?(?: (root|by)=(\d+))? algorithm=(\S.*)$`)

// Words returns the text of a call as in "allreduce sum of 8 float64", and its algorithm; a
// text that is none of the library's collectives, with quotes.
func Words(text string) (words, algorithm string) {
	m := call.FindStringSubmatch(text)
	if m == nil {
		return fmt.Sprintf("%q", text), ""
	}
	words, what, counts := m[1], m[2], m[3]
	if slices.Contains(combining, m[1]) {
		operation, kind, _ := strings.Cut(what, " ")
		words, what = words+" "+operation, kind
	}
	if count, ok := strings.CutPrefix(counts, "count="); ok {
		words += " of " + count + " " + what
	} else if counts != "" {
		words += " of " + what + " with " + strings.Replace(counts, "=", " ", 1)
	}
	switch m[4] {
	case "root":
		words += " with root " + m[5]
	case "by":
		words += " by " + m[5]
	}
	return words, m[6]
}

// combining are the collectives with an operation.
var combining = []string{"reduce", "allreduce", "reduce-scatter", "scan", "exscan"}
