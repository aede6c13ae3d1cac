package launch

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The environment that tells a process its place in a job.
const (
	envRank      = "CHORALE_RANK"      // the rank; not set for inproc
	envSize      = "CHORALE_SIZE"      // the number of ranks
	envTransport = "CHORALE_TRANSPORT" // tcp or inproc
	envControl   = "CHORALE_CONTROL"   // where the launcher listens, as in 127.0.0.1:4711; not set for inproc
	envToken     = "CHORALE_TOKEN"     // the job's secret, 32 hexadecimal digits
)

var envNames = []string{envRank, envSize, envTransport, envControl, envToken}

// A Place is a process's place in a job.
type Place struct {
	Launched  bool   // a launcher started this process; if not, it is the only rank
	Transport string // "inproc" when this one process runs all ranks as goroutines
	Rank      int    // 0 when it runs them all
	Size      int
	Control   string // the address of the launcher; "" when there is nothing to ask it
	Token     [16]byte
}

// Environment returns the place in a job that this process's environment
// states. A process that no launcher has started is the only rank of its job.
// Variables that contradict each other, or make no sense, are an error.
func Environment() (Place, error) { return placeOf(os.LookupEnv) }

func placeOf(lookup func(string) (string, bool)) (Place, error) {
	place := Place{Size: 1, Transport: "inproc"}
	var set []string
	for _, name := range envNames {
		if _, ok := lookup(name); ok {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return place, nil
	}
	place.Launched = true
	var err error
	get := func(name string) string {
		value, ok := lookup(name)
		if !ok && err == nil {
			err = fmt.Errorf("%s is not set, but %s is: chorale run sets both", name, set[0])
		}
		return value
	}
	number := func(name string, lo, hi int, want string) int {
		value := get(name)
		n, bad := strconv.Atoi(value)
		if (bad != nil || n < lo || n > hi) && err == nil {
			err = fmt.Errorf("%s=%s: want %s", name, value, want)
		}
		return n
	}
	place.Size = number(envSize, 1, 1<<31-1, "a number of ranks, 1 or more")
	place.Transport = get(envTransport)
	switch place.Transport {
	case "inproc":
		return place, err
	case "tcp":
	default:
		get(envTransport)
		if err == nil {
			err = fmt.Errorf("%s=%s: want inproc or tcp", envTransport, place.Transport)
		}
		return place, err
	}
	place.Rank = number(envRank, 0, place.Size-1, fmt.Sprintf("a rank from 0 to %d", place.Size-1))
	place.Control = get(envControl)
	place.Token, err = parseToken(get(envToken), err)
	return place, err
}

// parseToken reads 32 hexadecimal digits. An earlier error has precedence.
func parseToken(s string, earlier error) (token [16]byte, err error) {
	n, err := hex.Decode(token[:], []byte(s[:min(len(s), 2*len(token))]))
	if earlier == nil && (err != nil || n != len(token) || len(s) != 2*n) {
		earlier = fmt.Errorf("%s is not 32 hexadecimal digits: chorale run sets it", envToken)
	}
	return token, earlier
}

// environ returns the variables that state the place.
func (p Place) environ() []string {
	vars := []string{
		envSize + "=" + strconv.Itoa(p.Size),
		envTransport + "=" + p.Transport,
		tokenVariable(p.Token),
	}
	if p.Transport == "inproc" {
		return vars
	}
	return append(vars, envRank+"="+strconv.Itoa(p.Rank), envControl+"="+p.Control)
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
