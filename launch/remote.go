package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
)

// A Remote says on which hosts the ranks of a job run, and how they are reached.
//
// The launcher opens one connection to each host, by ssh, and starts an agent there: this
// process's own executable, which calls [Agent]. What the agent has to know, the job's
// secret among it, goes over the connection, and not into arguments. The agent starts
// the host's ranks. When the connection ends, it kills them.
type Remote struct {
	// Hosts are the hosts, in the order of the ranks. A host that is this machine is
	// reached like any other. Required.
	Hosts []Host
	// Rounds places rank after rank on one host after the other, instead of filling
	// each host first.
	Rounds bool
	// SSH is the ssh command with its first arguments; nil means ssh.
	SSH []string
	// Launcher is a command that runs another command on a host, and takes the place of
	// ssh: in each of its words, {host} is replaced by the host's name. The path of the
	// agent and its argument follow. Nil means SSH.
	Launcher []string
	// Agent is the path of the agent on every host; "" means that of this process's
	// executable. If a host that ssh reaches has nothing there, that executable is copied
	// for the time of the job.
	Agent string
	// AgentArgs are the arguments with which that executable calls [Agent]. Required.
	AgentArgs []string
	// NoCopy says that Program is an executable that every host has. Otherwise a
	// Program with a path separator is copied to each host, after it has been built if
	// it is a Go package. A Program without one is looked up in the PATH of each host.
	NoCopy bool
	// Env are the names of variables of [Config.Env] that the ranks get, beside those
	// whose names begin with CHORALE_. Other variables are those of the host.
	Env []string

	helloTimeout time.Duration // 0 means helloTimeout
}

// complete checks the configuration of a job on these hosts, and returns its number of
// ranks, which is that of all slots if size is 0.
func (r *Remote) complete(size int, transport string, env []string) (int, error) {
	slots := 0
	for _, h := range r.Hosts {
		if err := checkHost(h.Name); err != nil {
			return 0, usageError{err}
		}
		if h.Slots < 1 {
			return 0, usagef("host %s has %d slots: want at least 1", h.Name, h.Slots)
		}
		slots += h.Slots
	}
	used := 0
	if size == 0 {
		size = slots
	}
	if size <= slots {
		for _, ranks := range place(r.Hosts, size, r.Rounds) {
			if len(ranks) > 0 {
				used++
			}
		}
	}
	switch {
	case slots == 0:
		return 0, usagef("no hosts: want at least 1")
	case size > slots:
		return 0, usagef("%d ranks, and the %d hosts have %d slots: want at most as many ranks, or more slots, as in %s:%d", size, len(r.Hosts), slots, r.Hosts[0].Name, r.Hosts[0].Slots+size-slots)
	case transport == "inproc":
		return 0, usagef("transport inproc is one process, and the hosts would run several: want auto or tcp")
	case transport == "shm" && used > 1:
		return 0, usagef("transport shm is for ranks of one host, and %d hosts run ranks: want auto or tcp", used)
	case len(r.Launcher) > 0 && !slices.ContainsFunc(r.Launcher, func(word string) bool { return strings.Contains(word, hostWord) }):
		return 0, usagef("launcher %q: want %s in it, where the name of the host goes", strings.Join(r.Launcher, " "), hostWord)
	case r.Agent != "" && !isOneLine(r.Agent):
		return 0, usagef("agent %q: want a path without control characters", r.Agent)
	}
	for _, name := range r.Env {
		if strings.Contains(name, "=") {
			return 0, usagef("variable %q: want a name alone: the value is that of the launcher's environment", name)
		}
		if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			return 0, usagef("variable %s is not set", name)
		}
	}
	return size, nil
}

// hostWord stands for the name of the host in a launcher.
const hostWord = "{host}"

// command returns the arguments that run the agent on a host. Bytes is the length of this
// process's executable, of which path is the path.
func (r *Remote) command(host, path string, bytes int64) []string {
	copies := r.Agent == "" && len(r.Launcher) == 0
	agent := append([]string{cmp.Or(r.Agent, path)}, r.AgentArgs...)
	if len(r.Launcher) > 0 {
		args := make([]string, len(r.Launcher))
		for i, word := range r.Launcher {
			args[i] = strings.ReplaceAll(word, hostWord, host)
		}
		return append(args, agent...)
	}
	ssh := r.SSH
	if len(ssh) == 0 {
		ssh = []string{"ssh"}
	}
	if copies {
		agent = append([]string{"sh", "-c", copyScript, "chorale", strconv.FormatInt(bytes, 10)}, agent...)
	}
	for i, word := range agent {
		agent[i] = quote(word)
	}
	return append(slices.Clone(ssh), "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", "-T",
		host, "exec "+strings.Join(agent, " "))
}

// quote returns a word that any login shell takes for that word: sh and its relatives,
// csh, which replaces a ! even between quotes, and fish, to which a backslash there
// means something.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return word
	}
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`, `\`, `'\\'`).Replace(word) + "'"
}

func isOneLine(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// environment returns the variables that the ranks on other hosts get.
func (r *Remote) environment(env []string) (passed []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "CHORALE_") && name != "CHORALE_SSH" || slices.Contains(r.Env, name) {
			passed = append(passed, v)
		}
	}
	return passed
}

// copyScript runs an agent. Its arguments are the length of the launcher's executable, the
// path of the agent and the arguments of that. If nothing is at the path, the script asks
// for the executable on standard output, reads it from standard input, and keeps it for
// as long as it runs. It has nothing in it that a login shell finds between single
// quotes.
const copyScript = `n=$1; shift; if [ -x "$1" ]; then exec "$@"; fi; shift; ` +
	`d=$(mktemp -d "${TMPDIR:-/tmp}/` + buildPrefix + `XXXXXXXXXX") || exit; ` +
	`echo; echo "` + copyMagic + `$(uname -sm)"; head -c "$n" >"$d/chorale"; s=1; ` +
	`if [ $(($(wc -c <"$d/chorale"))) = "$n" ] && chmod 700 "$d/chorale"; then ` + envAgentDir + `="$d" "$d/chorale" "$@"; s=$?; fi; ` +
	`rm -rf "$d"; exit $s`

const (
	// copyMagic begins the line with which copyScript asks for the executable. What
	// uname says of the host follows.
	copyMagic = "chorale-copy "

	// envAgentDir names the directory of an agent that was copied.
	envAgentDir = "CHORALE_AGENT_DIR"

	// agentMagic begins the line with which an agent begins. A hello in JSON follows.
	agentMagic = "chorale-agent "

	// agentVersion is that of the protocol between launcher and agent.
	agentVersion = 1

	// maxHello bounds what a host prints before the end of that line, in bytes.
	maxHello = 64 << 10

	// maxOrders bounds the line with which the launcher answers, in bytes.
	maxOrders = 16 << 20
)

// A hello is what an agent says of itself and of its host.
type hello struct {
	Version    int    `json:"version"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Processors int    `json:"processors"`
}

// orders are what a launcher wants an agent to run. They are one line of JSON. If the
// program is copied, its bytes follow, and then frames.
type orders struct {
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

// parseOrders parses the line of a launcher, which has the secret that is returned.
func parseOrders(line []byte) (o orders, secret proof.Secret, err error) {
	if err := json.Unmarshal(line, &o); err != nil {
		return o, secret, fmt.Errorf("%d bytes that are no orders of a launcher", len(line)) // an error could quote the secret
	}
	secret, err = proof.ParseSecret(o.Secret)
	switch {
	case err != nil:
		return o, secret, err
	case o.Size < 1 || o.Size > maxRanks || len(o.Ranks) < 1 || len(o.Ranks) > o.Size:
		return o, secret, fmt.Errorf("%d of %d ranks: want at least 1, and at most %d", len(o.Ranks), o.Size, maxRanks)
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
