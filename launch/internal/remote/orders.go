package remote

import (
	"encoding/json"
	"fmt"

	"github.com/chorale-go/chorale/internal/proof"
)

// Orders are what a launcher wants an agent to run. They are one line of JSON. If the
// program is copied, its bytes follow, and then frames.
type Orders struct {
	Secret     string   `json:"secret"`
	Control    string   `json:"control"`
	Transport  string   `json:"transport"` // auto, shm or tcp
	Size       int      `json:"size"`
	Ranks      []int    `json:"ranks"` // those of the host
	Processors int      `json:"processors,omitempty"`
	Stall      int64    `json:"stall,omitempty"` // ns
	Program    string   `json:"program"`         // argument 0
	Path       string   `json:"path,omitempty"`  // of the executable, unless it is copied
	Bytes      int64    `json:"bytes,omitempty"` // the length of the executable, if it is copied
	Args       []string `json:"args,omitempty"`
	Dir        string   `json:"dir,omitempty"`
	AnyDir     bool     `json:"anyDir,omitempty"` // the agent's own will do if there is no Dir
	Env        []string `json:"env,omitempty"`
	Input      bool     `json:"input,omitempty"` // rank 0 has a standard input
	Verbose    bool     `json:"verbose,omitempty"`
}

// ParseOrders parses the line of a launcher, which has the secret that is returned.
func ParseOrders(line []byte) (o Orders, secret proof.Secret, err error) {
	if err := json.Unmarshal(line, &o); err != nil {
		return o, secret, fmt.Errorf("%d bytes that are no orders of a launcher", len(line)) // an error could quote the secret
	}
	secret, err = proof.ParseSecret(o.Secret)
	switch {
	case err != nil:
		return o, secret, err
	case o.Size < 1 || o.Size > MaxRanks || len(o.Ranks) < 1 || len(o.Ranks) > o.Size:
		return o, secret, fmt.Errorf("%d of %d ranks: want at least 1, and at most %d", len(o.Ranks), o.Size, MaxRanks)
	case o.Transport != "auto" && o.Transport != "shm" && o.Transport != "tcp":
		return o, secret, fmt.Errorf("no transport %q between hosts: want auto, shm or tcp", o.Transport)
	case o.Bytes < 0 || (o.Bytes == 0) == (o.Path == ""):
		return o, secret, fmt.Errorf("a program %q of %d bytes: want a path, or a length", o.Path, o.Bytes)
	case o.Stall < 0 || o.Processors < 0 || o.Program == "" || o.Control == "":
		return o, secret, fmt.Errorf("orders without a program, or with a number below 0")
	}
	for i, rank := range o.Ranks {
		if rank < 0 || rank >= o.Size || i > 0 && rank <= o.Ranks[i-1] {
			return o, secret, fmt.Errorf("ranks %v: want each once, in order, from 0 to %d", o.Ranks, o.Size-1)
		}
	}
	return o, secret, nil
}
