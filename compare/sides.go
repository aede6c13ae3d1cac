package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A side is a library over a transport, in one configuration.
type side struct {
	name      string // "chorale", "Open MPI", "MPICH", "Gloo"
	transport string // ours: inproc, shm, shm-alloc, tcp; theirs: shm, tcp
	config    string // what tells it from other sides of the same library and transport
	why       string // it is configured as it is
	optional  bool   // if its program fails, the page says so, and the others are measured
	// takes returns which calls of a group the side measures; nil stands for all.
	takes func(g group) []string
	// command returns the program that measures a group. It prints rows as JSON.
	command func(ctx context.Context, s settings, g group) *exec.Cmd
}

func (s side) ours() bool { return s.name == "chorale" }

func (s side) String() string { return s.label() + " over " + s.transport }

// label names the side in the rows of its transport.
func (s side) label() string { return strings.TrimSpace(s.name + " " + s.config) }

// restrict returns the part of a group that the side measures: a peer, only what one of ours
// measures that is compared with it.
func (s side) restrict(set settings, g group) group {
	compared := func(t string) bool { return set.hosts > 0 || peerOf(t) == s.transport }
	if !s.ours() && !slices.ContainsFunc(set.transports(g.part), compared) {
		g.ops = nil
	} else if s.takes != nil {
		g.ops = s.takes(g)
	}
	return g
}

// timeout bounds a run. Ours has to end.
func (s side) timeout(set settings) time.Duration {
	if s.ours() {
		return 5 * time.Minute
	}
	return set.runLimit
}

// withoutAlloc returns the name of a transport without the suffix that stands for buffers
// from Alloc.
func withoutAlloc(transport string) string { return strings.TrimSuffix(transport, "-alloc") }

// peerOf returns the transport of MPI that one of ours is compared with: goroutines are
// compared with processes that share memory.
func peerOf(transport string) string {
	if transport == "inproc" {
		return "shm"
	}
	return withoutAlloc(transport)
}

// ours is chorale over a transport, in the parts that have it.
func ours(program, transport string, s settings) side {
	return side{name: "chorale", transport: transport,
		takes: func(g group) []string {
			if slices.Contains(s.transports(g.part), transport) {
				return g.ops
			}
			return nil
		},
		command: func(ctx context.Context, s settings, g group) *exec.Cmd {
			args := append([]string{"bench", "-n", strconv.Itoa(g.ranks), "--transport", withoutAlloc(transport), "--format", "json",
				"--sizes", list(g.sizes), "--time", s.rowTime.String()}, g.ops...)
			if transport != withoutAlloc(transport) {
				args = append(args, "--alloc")
			}
			if g.root != rotatingRoot {
				args = append(args, "--root", g.root)
			}
			return exec.CommandContext(ctx, program, args...)
		}}
}

// crowded reports whether ranks outnumber the processors.
func crowded(g group) bool { return g.ranks > runtime.NumCPU() }

// when returns a choice of all of a group's calls under a condition.
func when(condition func(g group) bool) func(g group) []string {
	return func(g group) []string {
		if condition(g) {
			return g.ops
		}
		return nil
	}
}

// maxUnbound bounds the ranks of Open MPI for each processor that are also measured unbound.
const maxUnbound = 2

// inShared are the collectives that Open MPI's component coll/sm has.
var inShared = []string{"bcast", "reduce", "allreduce", "barrier"}

// openMPISides returns Open MPI over a transport in each configuration that is the best one
// for some cells.
func openMPISides(program, transport, congestion string) []side {
	base := []string{"--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "vader,self"}
	const bound = "One processor for each rank; ranks that outnumber the processors share them by turns, and yield: without, a call takes milliseconds."
	why := "`vader` is its own shared memory, with a single copy from process to process where the kernel allows it. " + bound
	if transport == "tcp" {
		base = []string{"--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"}
		why = bound
	}
	make := func(config, why string, takes func(g group) []string, env []string, binding func(g group) string, more ...string) side {
		s := side{name: openMPI.name, transport: transport, config: config, why: why, takes: takes}
		s.command = func(ctx context.Context, set settings, g group) *exec.Cmd {
			args := slices.Concat([]string{"-n", strconv.Itoa(g.ranks)}, base, []string{"--bind-to", binding(g)}, more)
			if crowded(g) {
				args = append(args, "--mca", "mpi_yield_when_idle", "1")
			}
			cmd := exec.CommandContext(ctx, openMPI.launcher, append(args, mpiArgs(program, s.label(), transport, set, g)...)...)
			cmd.Env = append(os.Environ(), env...)
			if os.Geteuid() == 0 { // otherwise it refuses to run
				cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
			}
			return cmd
		}
		return s
	}
	core := func(g group) string {
		if crowded(g) {
			return "core:overload-allowed"
		}
		return "core"
	}
	none := func(group) string { return "none" }
	plain := func(g group) bool { return g.part == collectives }
	few := func(g group) bool { return g.ranks <= maxUnbound*runtime.NumCPU() }
	sides := []side{
		make("", why, nil, nil, core),
		make("unbound", "Two ranks for each processor are faster in some cells where the system places them. More are not: a run by turns with eight ranks found none.",
			when(func(g group) bool { return plain(g) && crowded(g) && few(g) }), nil, none),
	}
	if transport == "shm" {
		return append(sides, make("coll/sm", "Its collectives in shared memory are not selected by default. With a processor for each rank they are faster for short messages; with more ranks, ten to a hundred times slower.",
			func(g group) []string {
				if !plain(g) || crowded(g) {
					return nil
				}
				return intersect(g.ops, inShared)
			}, nil, core, "--mca", "coll_sm_priority", "100"))
	}
	if congestion != ourCongestion {
		sides = append(sides, make(ourCongestion, "The congestion control that chorale's sockets ask for: the program gives it to the library's sockets.",
			when(func(g group) bool { return g.part != forms }), []string{"CONGESTION=" + ourCongestion}, core))
	}
	return sides
}

// ourCongestion is the congestion control that chorale's sockets ask for.
const ourCongestion = "reno"

// mpichSide is MPICH over shared memory. Over TCP, its messages take milliseconds here.
func mpichSide(program string) side {
	return side{name: mpich.name, transport: "shm", why: "Its defaults, as Debian builds it (`ch4:ucx`), and a processor for each rank. Where ranks outnumber the processors, a call takes 4 ms and more whatever the flags, because they spin; there, it is not measured.",
		takes: when(func(g group) bool { return !crowded(g) }),
		command: func(ctx context.Context, s settings, g group) *exec.Cmd {
			args := append([]string{"-bind-to", "core", "-n", strconv.Itoa(g.ranks)}, mpiArgs(program, mpich.name, "shm", s, g)...)
			return exec.CommandContext(ctx, mpich.launcher, args...)
		}}
}

// mpiArgs returns the program of mpi/mpi.c with its arguments.
func mpiArgs(program, name, transport string, s settings, g group) []string {
	return []string{program, name, transport, g.root, strconv.Itoa(int(s.rowTime.Milliseconds())), list(g.sizes), strings.Join(g.ops, ",")}
}

// maxGlooCrowd bounds the ranks of Gloo for each processor.
const maxGlooCrowd = 2

// glooSide is Gloo over TCP.
func glooSide(program, dir, congestion string) side {
	s := side{name: gloo.name, transport: "tcp", optional: true, why: "Its defaults, every algorithm of allreduce that it has, and the congestion control of chorale's sockets. Each rank has a second thread, which spins: ranks beyond two for each processor are not measured.",
		takes: when(func(g group) bool {
			return g.part == collectives && g.root == rotatingRoot && g.ranks <= maxGlooCrowd*runtime.NumCPU()
		})}
	s.command = func(ctx context.Context, set settings, g group) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, strconv.Itoa(g.ranks), g.root, strconv.Itoa(int(set.rowTime.Milliseconds())), list(g.sizes), strings.Join(g.ops, ","))
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		if congestion != ourCongestion {
			cmd.Env = append(cmd.Env, "CONGESTION="+ourCongestion)
		}
		return cmd
	}
	return s
}

// A setup is how a side of a peer ran.
type setup struct {
	Side    string `json:"side"`
	Ranks   []int  `json:"n"`
	Command string `json:"command"` // up to what is measured
	Why     string `json:"why"`
}

// setups returns how the peers run the groups.
func setups(s settings, sides []side) (all []setup) {
	for _, side := range sides {
		if side.ours() {
			continue
		}
		for _, g := range s.groups() {
			if g = side.restrict(s, g); len(g.ops) == 0 {
				continue
			}
			command := commandLine(side.command(context.Background(), s, g), g)
			i := slices.IndexFunc(all, func(u setup) bool { return u.Side == side.String() && u.Command == command })
			if i < 0 {
				i = len(all)
				all = append(all, setup{side.String(), nil, command, side.why})
			}
			if !slices.Contains(all[i].Ranks, g.ranks) {
				all[i].Ranks = append(all[i].Ranks, g.ranks)
			}
		}
	}
	return all
}

// commandLine returns the environment and the command line, with N for the number of ranks,
// up to the program that measures or its arguments.
func commandLine(cmd *exec.Cmd, g group) string {
	var words []string
	for _, v := range cmd.Env {
		if strings.HasPrefix(v, "CONGESTION=") {
			words = append(words, v)
		}
	}
	words = append(words, filepath.Base(cmd.Args[0]))
	for _, w := range cmd.Args[1:] {
		if filepath.IsAbs(w) {
			break
		}
		if w == strconv.Itoa(g.ranks) {
			w = "N"
		}
		words = append(words, w)
		if filepath.IsAbs(cmd.Args[0]) { // it starts its ranks itself
			break
		}
	}
	return strings.Join(words, " ")
}

func list(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}
