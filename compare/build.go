package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// A library is one that Debian packages.
type library struct {
	name, compiler, launcher, packages string
}

var (
	openMPI = library{"Open MPI", "mpicc.openmpi", "mpirun.openmpi", "openmpi-bin libopenmpi-dev"}
	mpich   = library{"MPICH", "mpicc.mpich", "mpirun.mpich", "mpich libmpich-dev"}
	gloo    = library{"Gloo", "g++", "", "g++ libgloo-dev"}
)

// build builds the programs that measure, in dir, and returns the sides in the order in
// which they measure: each of ours before its peers. Hosts are those of the ranks, or nil
// for this machine. Omitted says which peer is missing, and why; MPI may not be missing.
func build(ctx context.Context, s settings, dir string, hosts *hosts) (sides []side, omitted []string, err error) {
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
		return nil, nil, errors.Join(missing...)
	}
	chorale := filepath.Join(dir, "chorale")
	if err := compile(ctx, "go", "build", "-o", chorale, "./cmd/chorale"); err != nil {
		return nil, nil, err
	}
	for _, l := range []library{openMPI, mpich} {
		// MPI's calls of socket find the program's, which is exported.
		if err := compile(ctx, l.compiler, "-O3", "-rdynamic", "-Wno-stringop-overflow", "-o", l.program(dir), filepath.Join("compare", "mpi", "mpi.c"), "-lm", "-ldl"); err != nil {
			return nil, nil, err
		}
	}
	if hosts != nil {
		return []side{hosts.ours(chorale), hosts.openMPI(openMPI.program(dir))}, nil, nil
	}
	congestion := systemCongestion()
	for _, t := range s.allTransports() {
		sides = append(sides, ours(chorale, t, s))
		peer := peerOf(t)
		if slices.ContainsFunc(sides, func(s side) bool { return !s.ours() && s.transport == peer }) {
			continue
		}
		sides = append(sides, openMPISides(openMPI.program(dir), peer, congestion)...)
		if peer == "shm" {
			sides = append(sides, mpichSide(mpich.program(dir)))
			continue
		}
		if err := buildGloo(ctx, dir); err != nil {
			omitted = append(omitted, fmt.Sprintf("Gloo was not measured: %v.", err))
		} else {
			sides = append(sides, glooSide(filepath.Join(dir, "gloo"), dir, congestion))
		}
	}
	return sides, omitted, nil
}

// buildGloo builds the program of gloo/gloo.cc.
func buildGloo(ctx context.Context, dir string) error {
	source := filepath.Join("compare", "gloo", "gloo.cc")
	cmd := exec.CommandContext(ctx, gloo.compiler, "-std=c++17", "-O3", "-rdynamic", "-o", filepath.Join(dir, "gloo"), source, "-lgloo", "-ldl")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%s", cmd, out)
		return fmt.Errorf("its program does not compile here (%w); on Debian, apt-get install %s", err, gloo.packages)
	}
	return nil
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

// allTransports returns our transports in any part, in order.
func (s settings) allTransports() (all []string) {
	for _, p := range s.parts {
		for _, t := range p.transports {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}
