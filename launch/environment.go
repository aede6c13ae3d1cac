package launch

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The environment that tells a process its place in a job.
const (
	envRank      = "CHORALE_RANK"      // the rank; not set for inproc
	envSize      = "CHORALE_SIZE"      // the number of ranks
	envTransport = "CHORALE_TRANSPORT" // auto, inproc, shm or tcp
	envControl   = "CHORALE_CONTROL"   // where the launcher listens, as in 127.0.0.1:4711; not set for inproc
	envToken     = "CHORALE_TOKEN"     // the job's secret, 32 hexadecimal digits
	envMemory    = "CHORALE_MEMORY"    // the number of the open file that is the job's memory; set for auto and shm

	// How many processors the ranks share, as the launcher counts them; may be
	// missing. Ranks must not each count for themselves: they choose algorithms
	// by it, and must choose alike.
	envProcessors = "CHORALE_PROCESSORS"
)

var envNames = []string{envRank, envSize, envTransport, envControl, envToken, envMemory, envProcessors}

// envHost overrides what a rank takes for its host: ranks that give different
// ones do not share memory. It is for those who want to see what a job does that
// spans hosts, and for containers that hide that they share one.
const envHost = "CHORALE_HOST"

// A Place is a process's place in a job.
type Place struct {
	Launched  bool   // a launcher started this process; if not, it is the only rank
	Transport string // "inproc", "shm" or "tcp"; inproc when this one process runs all ranks as goroutines
	Mixes     bool   // shm is for ranks of one host alone, and others are reached over TCP
	Rank      int    // 0 when it runs them all
	Size      int
	Control   string // the address of the launcher; "" when there is nothing to ask it
	Token     [16]byte
	Memory    int // the open file that is the job's memory; 0 when there is none

	Processors int // that the ranks share; 0 if that is unknown
}

// Environment returns the place in a job that this process's environment
// states. A process that no launcher has started is the only rank of its job.
// Variables that contradict each other, or make no sense, are an error.
func Environment() (Place, error) { return placeOf(os.LookupEnv) }

func placeOf(lookup func(string) (string, bool)) (Place, error) {
	v := variables{lookup: lookup}
	for _, name := range envNames {
		if _, ok := lookup(name); ok {
			v.set = name
			break
		}
	}
	if v.set == "" {
		return Place{Transport: "inproc", Size: 1}, nil
	}
	place := Place{Launched: true}
	place.Size = v.number(envSize, 1, math.MaxInt32, "a number of ranks, 1 or more")
	if place.Transport = v.text(envTransport); place.Transport == "auto" {
		place.Transport, place.Mixes = "shm", true
	}
	switch place.Transport {
	case "inproc":
	case "shm", "tcp":
		place.Rank = v.number(envRank, 0, place.Size-1, fmt.Sprintf("a rank from 0 to %d", place.Size-1))
		place.Control = v.text(envControl)
		place.Token = v.token(envToken)
		if place.Transport != "tcp" {
			place.Memory = v.number(envMemory, 3, math.MaxInt32, "the number of an open file, 3 or more")
		}
	default:
		v.wrong("%s=%s: want auto, inproc, shm or tcp", envTransport, place.Transport)
	}
	if _, ok := lookup(envProcessors); ok {
		place.Processors = v.number(envProcessors, 1, math.MaxInt32, "a number of processors, 1 or more")
	}
	return place, v.err
}

// variables reads an environment and keeps the first error.
type variables struct {
	lookup func(string) (string, bool)
	set    string // one that is set
	err    error
}

func (v *variables) wrong(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

func (v *variables) text(name string) string {
	value, ok := v.lookup(name)
	if !ok {
		v.wrong("%s is not set, but %s is: chorale run sets both", name, v.set)
	}
	return value
}

func (v *variables) number(name string, lo, hi int, want string) int {
	text := v.text(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		v.wrong("%s=%s: want %s", name, text, want)
	}
	return n
}

func (v *variables) token(name string) (token [16]byte) {
	b, err := hex.DecodeString(v.text(name))
	if err != nil || len(b) != len(token) {
		v.wrong("%s is not 32 hexadecimal digits: chorale run sets it", name)
	}
	copy(token[:], b)
	return token
}

// environ returns the variables that state the place.
func (p Place) environ() []string {
	transport := p.Transport
	if p.Mixes {
		transport = "auto"
	}
	vars := []string{
		envSize + "=" + strconv.Itoa(p.Size),
		envTransport + "=" + transport,
		tokenVariable(p.Token),
	}
	if p.Processors > 0 {
		vars = append(vars, envProcessors+"="+strconv.Itoa(p.Processors))
	}
	if p.Transport == "inproc" {
		return vars
	}
	vars = append(vars, envRank+"="+strconv.Itoa(p.Rank), envControl+"="+p.Control)
	if p.Memory > 0 {
		vars = append(vars, envMemory+"="+strconv.Itoa(p.Memory))
	}
	return vars
}

// tokenVariable is what the environment of every process of a job holds.
func tokenVariable(token [16]byte) string {
	return envToken + "=" + hex.EncodeToString(token[:])
}

// withoutPlace returns env without the variables that state a place, so that a
// job that a rank starts is a job of its own.
func withoutPlace(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(envNames, name) {
			kept = append(kept, v)
		}
	}
	return kept
}
