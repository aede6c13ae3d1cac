package join

import (
	"context"
	"fmt"
	"net"
)

// pmi finds the place of a rank whose launcher speaks PMI-1: mpiexec of MPICH, srun
// --mpi=pmi2, and others.
//
// Children of a rank inherit PMI_FD without the connection that it names. A rank with
// PMI_RANK alone belongs to a launcher whose protocol is not public.
func pmi(env *environment) *Place {
	switch {
	case env.has("PMI_FD"):
		fd := env.number("PMI_FD", 0, 1<<20, "a file descriptor")
		if env.err != nil {
			return nil
		}
		if isConnected(fd) {
			return pmiDescriptor(env, fd)
		}
		env.miss("PMI_FD=%d is not an open connection, as in a child of a rank", fd)
	case env.has("PMI_RANK") && !env.has("PMI_PORT"):
		env.miss("PMI_RANK is set without PMI_FD or PMI_PORT, as HPE Cray PALS does")
	}
	if !env.has("PMI_PORT") {
		return nil
	}
	return pmiPort(env)
}

// pmiDescriptor is the place of a rank that inherited its connection.
func pmiDescriptor(env *environment, fd int) *Place {
	p := &Place{Launcher: pmiLauncher(env), Reason: env.reason("PMI_FD", "PMI_RANK", "PMI_SIZE")}
	for _, name := range []string{"PMI_RANK", "PMI_SIZE"} {
		if env.require(name, "PMI_FD") == "" {
			return nil
		}
	}
	p.Rank, p.Size = env.rankAndSize("PMI_RANK", "PMI_SIZE")
	p.connect = func(ctx context.Context, p *Place) (store, error) {
		conn, err := takeDescriptor(fd)
		if err != nil {
			return nil, err
		}
		return connectPMI(ctx, p, conn, "")
	}
	return p
}

// pmiPort is the place of a rank that dials its launcher, and learns its rank there.
func pmiPort(env *environment) *Place {
	p := &Place{Launcher: pmiLauncher(env), Reason: env.reason("PMI_PORT", "PMI_ID"), Rank: unknown, Size: unknown}
	if env.require("PMI_ID", "PMI_PORT") == "" {
		return nil
	}
	id := env.number("PMI_ID", 0, maxRanks, "a number")
	addr := env.get("PMI_PORT")
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
		env.fail("PMI_PORT=%.300q: want HOST:PORT", addr)
	}
	p.connect = func(ctx context.Context, p *Place) (store, error) {
		conn, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return connectPMI(ctx, p, conn, fmt.Sprintf("cmd=initack pmiid=%d\n", id))
	}
	return p
}

// pmiLauncher names the launcher, for reports alone. A step of Slurm has PMI_JOBID. Under
// mpiexec the variables of a step belong to mpiexec's own processes.
func pmiLauncher(env *environment) string {
	if env.has("PMI_JOBID", "SLURM_STEP_ID") {
		return SlurmPMI
	}
	return Hydra
}
