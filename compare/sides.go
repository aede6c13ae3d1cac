package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A side is a library over a transport.
type side struct {
	name      string // "chorale", "Open MPI", "MPICH"
	transport string // ours: inproc, shm, shm-alloc, tcp; theirs: shm, tcp
	// command returns the program that measures a group. It prints rows as JSON.
	command func(ctx context.Context, s settings, g group) *exec.Cmd
}

func (s side) ours() bool { return s.name == "chorale" }

func (s side) String() string { return s.name + " over " + s.transport }

// timeout bounds a run. MPICH with more ranks than processors gets a quarter: it spins
// without yielding, and each call takes milliseconds. Ours has to end.
func (s side) timeout(set settings, g group) time.Duration {
	switch {
	case s.ours():
		return 5 * time.Minute
	case s.name == mpich.name && g.ranks > runtime.NumCPU():
		return set.runLimit / 4
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

// A library is an implementation of MPI as Debian packages it.
type library struct {
	name, compiler, launcher, packages string
}

var openMPI = library{"Open MPI", "mpicc.openmpi", "mpirun.openmpi", "openmpi-bin libopenmpi-dev"}
var mpich = library{"MPICH", "mpicc.mpich", "mpirun.mpich", "mpich libmpich-dev"}

// build builds the programs that measure, in dir, and returns the sides in the order in
// which they measure: each of ours before its peers. Hosts are those of the ranks, or nil
// for this machine.
func build(ctx context.Context, s settings, dir string, hosts *hosts) (sides []side, err error) {
	var missing []error
	for _, l := range []library{openMPI, mpich} {
		for _, program := range []string{l.compiler, l.launcher} {
			if _, err := exec.LookPath(program); err != nil {
				missing = append(missing, fmt.Errorf("%s is missing: on Debian, apt-get install %s", program, l.packages))
				break
			}
		}
	}
	if missing != nil {
		return nil, errors.Join(missing...)
	}
	chorale := filepath.Join(dir, "chorale")
	if err := compile(ctx, "go", "build", "-o", chorale, "./cmd/chorale"); err != nil {
		return nil, err
	}
	for _, l := range []library{openMPI, mpich} {
		if err := compile(ctx, l.compiler, "-O3", "-o", l.program(dir), filepath.Join("compare", "mpi", "mpi.c"), "-lm"); err != nil {
			return nil, err
		}
	}
	if hosts != nil {
		return []side{hosts.ours(chorale), hosts.openMPI(openMPI.program(dir))}, nil
	}
	for _, t := range s.transports {
		sides = append(sides, ours(chorale, t))
		if peer := peerOf(t); !slices.ContainsFunc(sides, func(s side) bool { return !s.ours() && s.transport == peer }) {
			sides = append(sides, openMPISide(openMPI.program(dir), peer))
			if peer == "shm" { // over TCP, MPICH's messages take milliseconds here
				sides = append(sides, mpichSide(mpich.program(dir)))
			}
		}
	}
	return sides, nil
}

// program returns the path of the library's program.
func (l library) program(dir string) string { return filepath.Join(dir, l.launcher) }

// compile runs a compiler.
func compile(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}

func ours(program, transport string) side {
	return side{"chorale", transport, func(ctx context.Context, s settings, g group) *exec.Cmd {
		args := append([]string{"bench", "-n", strconv.Itoa(g.ranks), "--transport", withoutAlloc(transport), "--format", "json",
			"--sizes", list(s.sizes), "--time", s.rowTime.String()}, g.ops...)
		if transport != withoutAlloc(transport) {
			args = append(args, "--alloc")
		}
		if g.root != rotatingRoot {
			args = append(args, "--root", g.root)
		}
		return exec.CommandContext(ctx, program, args...)
	}}
}

// openMPISide gives Open MPI its best configuration: its own shared-memory transport;
// one processor for each rank or, with more ranks than processors, no binding and
// yielding.
func openMPISide(program, transport string) side {
	return side{openMPI.name, transport, func(ctx context.Context, s settings, g group) *exec.Cmd {
		args := []string{"-n", strconv.Itoa(g.ranks), "--oversubscribe", "--mca", "pml", "ob1"}
		if transport == "tcp" {
			args = append(args, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
		} else {
			args = append(args, "--mca", "btl", "vader,self")
		}
		if g.ranks > runtime.NumCPU() {
			args = append(args, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
		} else {
			args = append(args, "--bind-to", "core")
		}
		cmd := exec.CommandContext(ctx, openMPI.launcher, append(args, mpiArgs(program, openMPI.name, transport, s, g)...)...)
		cmd.Env = os.Environ()
		if os.Geteuid() == 0 { // otherwise it refuses to run
			cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		}
		return cmd
	}}
}

func mpichSide(program string) side {
	return side{mpich.name, "shm", func(ctx context.Context, s settings, g group) *exec.Cmd {
		args := append([]string{"-n", strconv.Itoa(g.ranks)}, mpiArgs(program, mpich.name, "shm", s, g)...)
		return exec.CommandContext(ctx, mpich.launcher, args...)
	}}
}

// mpiArgs returns the program of mpi/mpi.c with its arguments.
func mpiArgs(program, name, transport string, s settings, g group) []string {
	return []string{program, name, transport, g.root, strconv.Itoa(int(s.rowTime.Milliseconds())), list(s.sizes), strings.Join(g.ops, ",")}
}

func list(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}
