package launch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/launch/internal/remote"
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
		agent = append([]string{"sh", "-c", remote.CopyScript(guard.Prefix), "chorale", strconv.FormatInt(bytes, 10)}, agent...)
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
		if name == machine.Variable { // a file of this host, which the launcher reads for all
			continue
		}
		if strings.HasPrefix(name, "CHORALE_") && name != "CHORALE_SSH" || slices.Contains(r.Env, name) {
			passed = append(passed, v)
		}
	}
	return passed
}
