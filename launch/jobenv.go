package launch

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/launch/join"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/transport"
)

// The environment variables that describe a process's job to it.
const (
	envRank      = "CHORALE_RANK"      // the rank; not set for inproc
	envSize      = "CHORALE_SIZE"      // the number of ranks
	envTransport = "CHORALE_TRANSPORT" // auto, inproc, shm, tcp or mpi; a user may set it for other launchers
	envControl   = "CHORALE_CONTROL"   // where the launcher listens, as in 127.0.0.1:4711, or several such addresses with commas; not set for inproc
	envToken     = "CHORALE_TOKEN"     // the job's secret, 64 hexadecimal digits
	envMemory    = "CHORALE_MEMORY"    // the file descriptor of the host's shared memory; set for shm, and for auto if there is any

	// How many processors the ranks share, as the launcher counts them; optional.
	// The ranks do not count processors themselves: the choice of an algorithm
	// depends on the number, and all ranks must choose the same algorithm.
	envProcessors = "CHORALE_PROCESSORS"

	// How long ranks may wait for each other before the launcher says so, as in 30s;
	// optional.
	envStall = "CHORALE_STALL"

	// 1 if the job is to end then; optional, and set for inproc alone.
	envStallAbort = "CHORALE_STALL_ABORT"

	// 1 for a process that was started in the place of a lost rank: it joins no endpoint but
	// one for which others regroup; optional.
	envRespawned = "CHORALE_RESPAWNED"
)

// The variables of [JobEnv], in jobs of chorale run.
var envNames = []string{envRank, envSize, envTransport, envControl, envToken, envMemory, envProcessors, envStall, envStallAbort, envRespawned}

// envHost overrides the name of a rank's host: ranks with different names do not
// share memory. A user sets it to try a job that spans hosts, or where containers
// on one host have to be kept apart.
const envHost = "CHORALE_HOST"

// maxHost bounds the name of a host, in bytes.
const maxHost = 255

// envEncrypt is 1 for data connections that go on as TLS where they leave the host. All
// ranks have the same.
const envEncrypt = "CHORALE_ENCRYPT"

// envLinger is how long a rank that leaves waits for receivers, as in 90s. A user sets
// it where [transport.Linger] is too long, or too short.
const envLinger = "CHORALE_LINGER"

// A JobEnv is what a process knows of the job it is in: at first what its environment
// says, and after [Join] all of it.
type JobEnv struct {
	Launched  bool         // a launcher started this process; otherwise it is the only rank
	Foreign   *Foreign     // what another launcher than chorale run says; else nil
	Transport string       // "inproc", "shm", "tcp" or "mpi"; inproc if this one process runs all ranks as goroutines
	Mixed     bool         // shm is for ranks of one host alone, and tcp connects ranks of different hosts
	Rank      int          // 0 for inproc
	Size      int          // the number of ranks
	Control   string       // the addresses of the launcher, with commas between them; "" for inproc
	Secret    proof.Secret // the job's secret, of 32 bytes
	Memory    int          // the file descriptor of the job's shared memory; 0 if there is none

	Processors int // the number of processors that the ranks share; 0 if it is unknown

	// Hosts has a number for each rank: ranks of one host have the same one, and hosts are
	// numbered in the order of their lowest ranks. Nil means that all share one host.
	Hosts []int

	Stall time.Duration // how long a rank may wait for others before that is explained; 0: for ever

	StallAbort bool // the job ends then; of inproc, since the launcher ends the others

	Linger time.Duration // how long a rank that leaves waits for receivers; 0 for transport.Linger

	Encrypt bool // data connections that leave the host go on as TLS

	// ReportError sends the launcher the error with which this rank's program ends, before
	// the endpoint is closed, and reports whether the launcher will print it: once for all
	// ranks that send the same text, and once for those that have called different things.
	// Nil where no launcher prints errors, and before [Join].
	ReportError func(Failure) bool `json:"-"`

	// ReportMetrics sends the launcher the sums of this rank's calls, at any time until the
	// endpoint is closed. Nil where ReportError is.
	ReportMetrics func(totals []byte) `json:"-"`

	// ReportProfile sends the launcher what this rank has recorded of its calls, before the
	// endpoint is closed. Nil where ReportError is.
	ReportProfile func(record []byte) `json:"-"`

	// Respawned says that this process was started in the place of a lost rank, see
	// [Config.Respawn]. Its [Join] has returned because the others have regrouped.
	Respawned bool

	// Ranks are the job's ranks behind those of the endpoint, in ascending order: rank i of
	// the endpoint is rank Ranks[i] of the job, which is what the launcher prints. Nil where
	// both are the same, as in the endpoint that every rank has first.
	Ranks []int

	// Regroup gives ranks of this endpoint a new one, together with the processes that were
	// started in the place of lost ranks. See [Regroup]. Nil where there is no launcher of
	// chorale's, for inproc and before [Join].
	Regroup Regroup `json:"-"`

	// Selections are the rules by which all ranks of the job choose algorithms, for its
	// transport: those of the profile that the launcher has read, or under another launcher
	// what each rank has read itself, if that is the same on all. Nil means the built-in
	// tables, before [Join] too, and SelectionsReason why, if there is a reason.
	Selections       []model.Selection `json:"-"`
	SelectionsReason string

	Group int // the number of the endpoint in the job: 0 for the first, then one for each Regroup

	// ReportTrace is the same for the timeline that this rank has recorded.
	ReportTrace func(record []byte) `json:"-"`

	// CompareClocks compares the clock of this host with that of the launcher's host, or rank
	// 0's where that takes the launcher's part. Nil where there is no such connection.
	CompareClocks func() (clock.Offset, error) `json:"-"`

	// HostName has a value of its own on each host. "" before [Join].
	HostName string `json:"-"`
}

// A Regroup makes a new endpoint for ranks that are left of an older one, and for the
// processes that wait in [Join] since they were started in the place of lost ranks
// ([Config.Respawn]). An endpoint takes in nobody: its shared memory and its connections are
// made for as many ranks as have joined it. A new one is made as the first was.
//
// Members are the job's ranks that call it, in ascending order, the caller's among them. They
// are ranks of the endpoint that this Regroup has come with: rank i of that endpoint is rank
// Ranks[i] of the job, or i where [JobEnv.Ranks] is nil. All of them call it with the same id
// and the same members, on which they have agreed before; ranks that call it apart from them
// may use the same id. A call for another try has another id. When all have called it, the
// launcher takes in all processes that wait in Join. It waits for those it has started, or is
// about to, and that are not there yet, for [NewcomerTimeout] at most. There may be none.
// While lost ranks may still be started anew, it gives each rank of the endpoint that is no
// member, and has not left, 1 s to be lost: the members may have noticed it first.
//
// It returns what Join returns in the newcomers. The endpoint's size is that of the members
// and the newcomers together; its ranks are theirs in the ascending order of the job's ranks,
// which env.Ranks lists. Env.Hosts is of the new endpoint. Messages of the new endpoint never
// meet those of an older one. Env.Regroup is for the ranks of the new endpoint.
//
// If one of the members or newcomers is lost, leaves or gives up before the new endpoint is
// made, all callers get an error. It holds a [transport.PeerError] whose Peer is that rank,
// counted as the job does; newcomers that are still there wait for the next Regroup. All
// members get an endpoint, or none does, except those that are lost. When ctx ends, all get an
// error in the same way. A member that is there and does not call is waited for until then,
// and no stall report names it. A rank that is lost later is announced by the new endpoint,
// and by every older one that had the same process as its rank: not by one that had the
// process in whose place it came.
//
// Older endpoints stay as they are, and their communicators with them. The caller closes each
// endpoint that it has, in any order, and should close all before the process ends with
// success. Several goroutines may call Regroup at once, with different ids.
//
// The cost is that of Join: a connection to the launcher and, with shared memory, a segment
// for each host, beside those of older endpoints until these are closed.
type Regroup func(ctx context.Context, id uint64, members []int) (ep transport.Endpoint, env JobEnv, err error)

// NewcomerTimeout bounds how long a [Regroup] waits for processes that were started in the
// place of lost ranks.
const NewcomerTimeout = 5 * time.Second

// A Failure is the error with which a rank's program ends. Its details, as the stack of a
// panic, may differ from rank to rank. Of a collective it has the call, so that the launcher
// can put the calls of ranks together that have called different things.
type Failure = failure.Failure

// Environment returns the job that this process's environment describes, whichever
// launcher has set it: chorale run, or one that package join knows. A process that no
// launcher has started is the only rank of its job. It is an error if a variable is
// missing, contradicts another one, or has a value out of range.
//
// Rank and Size are −1 where only the launcher's server knows them; see [Join].
func Environment() (JobEnv, error) { return parseJobEnv(os.LookupEnv) }

// DefaultStall is how long ranks wait for each other before that is reported, unless
// CHORALE_STALL or [Config.Stall] says otherwise.
const DefaultStall = 30 * time.Second

// Stall returns how long the ranks of this process may wait for each other before that is
// reported: what CHORALE_STALL says, or DefaultStall.
func Stall() (time.Duration, error) {
	v := variables{lookup: os.LookupEnv}
	env := JobEnv{Stall: DefaultStall}
	v.user(&env)
	return env.Stall, v.err
}

func parseJobEnv(lookup func(string) (string, bool)) (JobEnv, error) {
	if env, ok, err := mpiJobEnv(lookup); ok {
		return env, err
	}
	v := variables{lookup: lookup}
	if v.set = launchedBy(lookup); v.set == "" {
		return foreignJob(&v)
	}
	env := JobEnv{Launched: true}
	env.Size = v.number(envSize, 1, math.MaxInt32, "a number of ranks, 1 or more")
	if env.Transport = v.text(envTransport); env.Transport == "auto" {
		env.Transport, env.Mixed = "shm", true
	}
	switch env.Transport {
	case "inproc":
	case "shm", "tcp":
		env.Rank = v.number(envRank, 0, env.Size-1, fmt.Sprintf("a rank from 0 to %d", env.Size-1))
		env.Control = v.text(envControl)
		env.Secret = v.secret(envToken)
		respawned, _ := lookup(envRespawned)
		env.Respawned = respawned == "1"
		if _, ok := lookup(envMemory); env.Transport == "shm" && !env.Respawned && (ok || !env.Mixed) {
			env.Memory = v.number(envMemory, 3, math.MaxInt32, "the number of an open file, 3 or more")
		}
	default:
		v.fail("%s=%s: want auto, inproc, shm, tcp or mpi", envTransport, env.Transport)
	}
	if _, ok := lookup(envProcessors); ok {
		env.Processors = v.number(envProcessors, 1, math.MaxInt32, "a number of processors, 1 or more")
	}
	abort, _ := lookup(envStallAbort)
	env.StallAbort = abort == "1"
	v.user(&env)
	return env, v.err
}

// launchedBy returns a variable that only chorale run sets, or "".
func launchedBy(lookup func(string) (string, bool)) string {
	if _, ok := lookup(envControl); ok {
		return envControl
	}
	if t, _ := lookup(envTransport); t == "inproc" {
		if _, ok := lookup(envSize); ok {
			return envSize
		}
	}
	return ""
}

// user reads the variables that a user may set under any launcher.
func (v *variables) user(env *JobEnv) {
	if _, ok := v.lookup(envStall); ok {
		env.Stall = v.duration(envStall)
	}
	if host, ok := v.lookup(envHost); ok && len(host) > maxHost {
		v.fail("%s has %d bytes: want at most %d", envHost, len(host), maxHost)
	}
	if _, ok := v.lookup(envLinger); ok {
		env.Linger = v.duration(envLinger)
	}
	encrypt, _ := v.lookup(envEncrypt)
	if env.Encrypt = encrypt == "1"; encrypt != "" && !env.Encrypt {
		v.fail("%s=%s: want 1, or the variable unset", envEncrypt, encrypt)
	}
}

// variables reads an environment and keeps the first error.
type variables struct {
	lookup func(string) (string, bool)
	set    string // a variable that is set
	err    error
}

func (v *variables) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

func (v *variables) text(name string) string {
	value, ok := v.lookup(name)
	if !ok {
		v.fail("%s is not set, but %s is: chorale run sets both", name, v.set)
	}
	return value
}

func (v *variables) number(name string, lo, hi int, want string) int {
	text := v.text(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		v.fail("%s=%s: want %s", name, text, want)
	}
	return n
}

func (v *variables) duration(name string) time.Duration {
	text := v.text(name)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		v.fail("%s=%s: want a duration of more than 0, as in 90s or 10m", name, text)
		return 0
	}
	return d
}

func (v *variables) secret(name string) proof.Secret {
	s, err := proof.ParseSecret(v.text(name))
	if err != nil {
		v.fail("%s: %w: chorale run sets it", name, err)
	}
	return s
}

// environ returns the variables that describe the job.
func (e JobEnv) environ() []string {
	transport := e.Transport
	if e.Mixed {
		transport = "auto"
	}
	vars := []string{
		envSize + "=" + strconv.Itoa(e.Size),
		envTransport + "=" + transport,
		tokenVariable(e.Secret),
	}
	if e.Processors > 0 {
		vars = append(vars, envProcessors+"="+strconv.Itoa(e.Processors))
	}
	if e.Stall > 0 {
		vars = append(vars, envStall+"="+e.Stall.String())
	}
	if e.Transport == "inproc" {
		if e.StallAbort {
			vars = append(vars, envStallAbort+"=1")
		}
		return vars
	}
	vars = append(vars, envRank+"="+strconv.Itoa(e.Rank), envControl+"="+e.Control)
	if e.Memory > 0 {
		vars = append(vars, envMemory+"="+strconv.Itoa(e.Memory))
	}
	if e.Respawned {
		vars = append(vars, envRespawned+"=1")
	}
	return vars
}

// tokenVariable returns the variable that gives a rank the job's secret. Other users of the machine cannot read it there.
func tokenVariable(s proof.Secret) string { return envToken + "=" + s.Reveal() }

// withoutJobEnv returns env without the variables that describe a job, of whichever
// launcher, so that a job that a rank starts is a job of its own.
func withoutJobEnv(env []string) []string {
	env = join.WithoutPlace(env)
	kept := make([]string, 0, len(env))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if name != guard.Variable && !slices.Contains(envNames, name) {
			kept = append(kept, v)
		}
	}
	return kept
}
