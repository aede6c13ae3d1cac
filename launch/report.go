package launch

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/launch/join"
)

// A Report is what a process has found out about its job. It holds no secret.
type Report struct {
	Version  string `json:"version"`  // of the program, of Go, and the system
	Launcher string `json:"launcher"` // "none" for a process that is the only rank
	Reason   string `json:"reason"`   // the variables that say so
	Rank     int    `json:"rank"`     // -1 if it is not known
	Size     int    `json:"size"`

	Host  string `json:"host"`  // its name
	Hosts int    `json:"hosts"` // the number of hosts on which the job has ranks

	Transport      string `json:"transport"`                // auto, shm, tcp or inproc
	SharesMemory   []int  `json:"sharesMemory"`             // the other ranks with which it shares memory
	FallbackReason string `json:"fallbackReason,omitempty"` // why it shares no memory
	Processors     int    `json:"processors"`               // that the selection of algorithms goes by; 0 if unknown

	Selections       int    `json:"selections"`                 // the rules of the machine's profile by which algorithms are chosen
	SelectionsDigest string `json:"selectionsDigest,omitempty"` // the same on all ranks
	SelectionsReason string `json:"selectionsReason,omitempty"` // why there are none

	Control  string           `json:"control,omitempty"` // where the control server listens
	TLS      bool             `json:"tls"`               // control connections are encrypted
	Secret   string           `json:"secret,omitempty"`  // where the secret comes from
	Address  string           `json:"address,omitempty"` // at which other ranks reach this one
	Rejected []NetworkAddress `json:"rejected"`          // addresses of this host at which they do not
}

// A NetworkAddress is an address of this host, and why it is not used.
type NetworkAddress struct {
	Interface string `json:"interface"`
	Address   string `json:"address"`
	Reason    string `json:"reason"`
}

// Describe joins the job that the process was started in, reports it, and leaves. All ranks
// of the job have to do so. When the rank cannot join, the report has what is known until
// then, and the error says why.
func Describe(ctx context.Context) (r Report, err error) {
	r.Version = version()
	r.Launcher, r.Rank, r.SharesMemory, r.Rejected = join.None, -1, []int{}, []NetworkAddress{}
	r.Host, _ = os.Hostname() // "" if it is not known
	if selection, err := network.Candidates(os.Getenv(network.Variable)); err == nil {
		for _, c := range selection.Rejected {
			r.Rejected = append(r.Rejected, NetworkAddress{c.Interface, c.Address.String(), c.Reason})
		}
	}
	env, err := Environment()
	if err != nil {
		return r, err
	}
	r.describe(env)
	ep, env, err := Join(ctx)
	r.describe(env)
	if err != nil {
		return r, err
	}
	if a, ok := ep.(*attached); ok {
		err = r.describePeers(ctx, a)
	}
	if closed := ep.Close(); err == nil {
		err = closed
	}
	return r, err
}

// version returns the version of the program's main module, as the go command has recorded
// it, those of Go and the system.
func version() string {
	program := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		program = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", program, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// describe reports what the environment and the control server say.
func (r *Report) describe(env JobEnv) {
	switch {
	case env.Foreign != nil:
		r.Launcher, r.Reason, r.Secret = env.Foreign.Place.Launcher, env.Foreign.Place.Reason, env.Foreign.SecretSource
	case env.Launched:
		r.Launcher, r.Reason, r.Secret = "chorale run", envControl+"="+env.Control, "chorale run"
	}
	r.Rank, r.Size, r.Processors = env.Rank, env.Size, env.Processors
	r.Transport = env.Transport
	r.Selections, r.SelectionsDigest, r.SelectionsReason = machine.Count(env.Selections), machine.Digest(env.Selections), env.SelectionsReason
	if env.Transport != "inproc" && env.Size > 1 {
		addresses, _ := env.controlAddresses() // Join returns the error
		r.Control, r.TLS = strings.Join(addresses, ","), env.leavesHost()
	}
	if env.Mixed {
		r.Transport = "auto"
	}
	r.Hosts = 1
	if env.Hosts != nil {
		r.Hosts = 1 + slices.Max(env.Hosts)
	}
}

// describePeers reports how the other ranks reach this one.
func (r *Report) describePeers(ctx context.Context, a *attached) error {
	r.Address, r.FallbackReason = a.self.Address, a.self.FallbackReason
	r.Rejected = slices.DeleteFunc(r.Rejected, func(n NetworkAddress) bool { // where all ranks meet at loopback
		host, _, err := net.SplitHostPort(r.Address)
		return err == nil && host == n.Address
	})
	for rank := range r.Size {
		if rank == r.Rank || a.self.Memory == "" {
			continue
		}
		theirs, err := a.launcher.MemoryOf(ctx, rank)
		if err != nil {
			return err
		}
		if theirs == a.self.Memory {
			r.SharesMemory = append(r.SharesMemory, rank)
		}
	}
	return nil
}
