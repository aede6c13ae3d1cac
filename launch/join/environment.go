package join

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// An environment reads variables, and keeps the first error.
type environment struct {
	lookup func(string) (string, bool)
	host   host
	misses []string // the variables that make no place because others are missing
	err    error
}

// A host is what a process sees of its host.
type host struct {
	name  func() (string, error) // os.Hostname
	names func() ([]byte, error) // the contents of /etc/hosts
}

var thisHost = host{
	name:  os.Hostname,
	names: func() ([]byte, error) { return os.ReadFile("/etc/hosts") },
}

func (e *environment) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

// miss notes why variables that are set make no place.
func (e *environment) miss(format string, args ...any) {
	e.misses = append(e.misses, fmt.Sprintf(format, args...))
}

// get returns the value of a variable. An empty one counts as not set.
func (e *environment) get(name string) string {
	value, _ := e.lookup(name)
	return value
}

func (e *environment) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return e.get(name) == "" })
}

// require fails unless a variable is set.
func (e *environment) require(name, by string) string {
	value := e.get(name)
	if value == "" {
		e.fail("%s is not set, but %s is: want both, or neither", name, by)
	}
	return value
}

func (e *environment) number(name string, lo, hi int, what string) int {
	n, err := strconv.Atoi(e.get(name))
	if err != nil || n < lo || n > hi {
		e.fail("%s=%.80q: want %s from %d to %d", name, e.get(name), what, lo, hi)
	}
	return n
}

// rankAndSize reads a rank and the number of ranks.
func (e *environment) rankAndSize(rankName, sizeName string) (rank, size int) {
	size = e.number(sizeName, 1, maxRanks, "a number of ranks")
	rank = e.number(rankName, 0, maxRanks-1, "a rank")
	if rank >= size {
		e.fail("%s=%d and %s=%d contradict each other: want a rank below the number of ranks", rankName, rank, sizeName, size)
	}
	return rank, size
}

// agree fails if a variable is set to another number than n, which the variable by has.
func (e *environment) agree(name string, n int, by string) {
	if e.has(name) && e.get(name) != strconv.Itoa(n) {
		e.fail("%s=%.80q and %s=%d contradict each other: want the same number", name, e.get(name), by, n)
	}
}

// reason is a list of variables with their values, for [Place.Reason].
func (e *environment) reason(names ...string) string {
	var set []string
	for _, name := range names {
		if e.has(name) {
			set = append(set, name+"="+e.get(name))
		}
	}
	return strings.Join(set, " ")
}

// The variables by which each launcher is detected. WithoutPlace removes a set that is
// complete, with its extras.
var signs = []struct{ signs, extras []string }{
	{[]string{envRank}, nil},
	{[]string{envSize}, nil},
	{[]string{envRendezvous}, nil},
	{[]string{"PMI_FD"}, []string{"PMI_RANK", "PMI_SIZE"}},
	{[]string{"PMI_PORT"}, []string{"PMI_ID"}},
	{[]string{"PMIX_NAMESPACE", "PMIX_RANK"}, []string{"PMIX_SERVER_URI2", "PMIX_SERVER_URI21", "PMIX_SERVER_URI3", "PMIX_SERVER_URI4", "PMIX_SERVER_URI41"}},
	{[]string{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}, nil},
	{[]string{"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, nil},
}

// WithoutPlace returns env, a list of NAME=VALUE, without the variables that give a
// process a place in a job: [Find] finds none in what it returns. A rank removes them
// for the processes that it starts, which are not ranks of its job.
//
// A variable that means nothing by itself, such as RANK, stays unless the others of
// its launcher are there.
func WithoutPlace(env []string) []string {
	set := map[string]bool{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value != ""
	}
	remove := map[string]bool{}
	for _, s := range signs {
		if !slices.ContainsFunc(s.signs, func(name string) bool { return !set[name] }) {
			for _, name := range slices.Concat(s.signs, s.extras) {
				remove[name] = true
			}
		}
	}
	kept := make([]string, 0, len(env))
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); !remove[name] {
			kept = append(kept, v)
		}
	}
	return kept
}
