package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// hosts are network namespaces of this machine that a bridge connects, each with a
// /dev/shm of its own and one of the machine's processors; several share a processor if
// there are more hosts than processors. The commands of both sides run on the first host,
// and start ranks on all.
type hosts struct {
	names     []string
	processes []*exec.Cmd // that hold the namespaces: one for each host, and one for the bridge
	enter     string      // a script: enter HOST COMMAND… runs a command line on a host
}

// newHosts makes n hosts, with the files that it needs in dir. It takes root.
func newHosts(ctx context.Context, n int, dir string) (h *hosts, err error) {
	h = &hosts{enter: filepath.Join(dir, "enter")}
	defer func() {
		if err != nil {
			h.close()
			err = fmt.Errorf("--hosts %d: %w", n, err)
		}
	}()
	for range n + 1 {
		// Open MPI's ranks of two hosts would use the same files in one /dev/shm.
		holder := exec.CommandContext(ctx, "unshare", "--net", "--mount", "sh", "-c", "mount -t tmpfs shm /dev/shm && exec sleep infinity")
		if err := holder.Start(); err != nil {
			return h, err
		}
		h.processes = append(h.processes, holder)
	}
	bridge := h.processes[n].Process.Pid
	if err := h.awaitNamespaces(ctx); err != nil {
		return h, err
	}
	commands := []string{inside(bridge, "ip link add br0 type bridge"), inside(bridge, "ip link set br0 up")}
	script := "#!/bin/sh\n# enter [OPTION…] HOST COMMAND… runs a command line on a host.\n" +
		"while case $1 in -*) true;; *) false;; esac; do shift; done\ncase $1 in\n"
	for i := range n {
		name, host := fmt.Sprintf("host%d", i), h.processes[i].Process.Pid
		h.names = append(h.names, name)
		script += fmt.Sprintf("%s) process=%d cpu=%d;;\n", name, host, i%runtime.NumCPU())
		commands = append(commands,
			fmt.Sprintf("ip link add eth0 netns %d type veth peer name port%d netns %d", host, i, bridge),
			inside(bridge, fmt.Sprintf("ip link set port%d master br0 up", i)),
			inside(host, "ip link set lo up"),
			inside(host, fmt.Sprintf("ip address add 10.78.0.%d/24 dev eth0", i+1)),
			inside(host, "ip link set eth0 up"))
	}
	// Open MPI's daemons of one machine would make the same directory.
	script += "*) echo \"$1: no such host\" >&2; exit 1;;\nesac\nexport TMPDIR=" + dir + "/$1\nmkdir -p \"$TMPDIR\"\nshift\n" +
		"exec taskset -c $cpu nsenter --net=/proc/$process/ns/net --mount=/proc/$process/ns/mnt -- sh -c \"$*\"\n"
	for _, c := range commands {
		words := strings.Fields(c)
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return h, fmt.Errorf("%s: %w: %s", c, err, out)
		}
	}
	return h, os.WriteFile(h.enter, []byte(script), 0o755)
}

func inside(process int, command string) string {
	return fmt.Sprintf("nsenter --net=/proc/%d/ns/net -- %s", process, command)
}

// awaitNamespaces waits until each holder is in a namespace of its own.
func (h *hosts) awaitNamespaces(ctx context.Context) error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	for _, holder := range h.processes {
		for {
			name := fmt.Sprintf("/proc/%d/", holder.Process.Pid)
			net, err := os.Readlink(name + "ns/net")
			if err != nil {
				return fmt.Errorf("unshare --net --mount: %w: want root, and a kernel with these namespaces", err)
			}
			if program, _ := os.ReadFile(name + "comm"); net != own && string(program) == "sleep\n" {
				break
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			runtime.Gosched()
		}
	}
	return nil
}

// close ends the hosts.
func (h *hosts) close() error {
	var errs []error
	for _, holder := range h.processes {
		errs = append(errs, holder.Process.Kill())
		holder.Wait() // it was killed
	}
	return errors.Join(errs...)
}

// ranksPerHost is how many ranks each host has, so that they share its memory.
const ranksPerHost = 2

// list returns the first hosts, with so many ranks in all.
func (h *hosts) list(ranks int) string {
	var all []string
	for _, name := range h.names[:ranks/ranksPerHost] {
		all = append(all, name+":"+strconv.Itoa(ranksPerHost))
	}
	return strings.Join(all, ",")
}

// on returns a command that runs a command on the first host.
func (h *hosts) on(ctx context.Context, words ...string) *exec.Cmd {
	args := []string{h.names[0]}
	for _, w := range words {
		args = append(args, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return exec.CommandContext(ctx, h.enter, args...)
}

// betweenHosts stands for what connects the ranks of several hosts.
const betweenHosts = "hosts"

// ours is chorale: shared memory within a host, TCP between hosts.
func (h *hosts) ours(program string) side {
	return side{name: "chorale", transport: betweenHosts, command: func(ctx context.Context, s settings, g group) *exec.Cmd {
		args := []string{program, "bench", "-n", strconv.Itoa(g.ranks), "--transport", "auto", "--format", "json",
			"--hosts", h.list(g.ranks), "--launcher", h.enter + " {host}", "--agent", program,
			"--sizes", list(g.sizes), "--time", s.rowTime.String()}
		if g.root != rotatingRoot {
			args = append(args, "--root", g.root)
		}
		return h.on(ctx, append(args, g.ops...)...)
	}}
}

// openMPI is Open MPI with its own shared memory within a host, and TCP between hosts.
func (h *hosts) openMPI(program string) side {
	return side{name: openMPI.name, transport: betweenHosts, why: "Its own shared memory within a host, and TCP between hosts; the ranks yield, because they outnumber the processors of their host.", command: func(ctx context.Context, s settings, g group) *exec.Cmd {
		args := []string{openMPI.launcher, "--mca", "plm_rsh_agent", h.enter, "--mca", "orte_keep_fqdn_hostnames", "1",
			"--host", h.list(g.ranks), "-n", strconv.Itoa(g.ranks), "--map-by", "slot", "--bind-to", "none",
			"--mca", "pml", "ob1", "--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
			"--mca", "mpi_yield_when_idle", "1"}
		if os.Geteuid() == 0 { // otherwise it refuses to run
			args = append(args, "--allow-run-as-root")
		}
		return h.on(ctx, append(args, mpiArgs(program, openMPI.name, "tcp", s, g)...)...)
	}}
}
