package launch

import (
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/mpi"
)

// HasMPI reports whether this program was built with an MPI.
func HasMPI() bool { return mpi.Present }

// mpiJobEnv returns the job of a process that the launcher of an MPI has started with
// CHORALE_TRANSPORT=mpi, if it is one. MPI says which rank it is: Rank and Size are 0.
func mpiJobEnv(lookup func(string) (string, bool)) (env JobEnv, ok bool, err error) {
	if name, _ := lookup(envTransport); name != "mpi" {
		return JobEnv{}, false, nil
	}
	v := variables{lookup: lookup}
	for _, name := range []string{envRank, envSize, envControl, envMemory} {
		if value, ok := lookup(name); ok {
			v.fail("%s=%s and %s=mpi: want only one, because MPI says which rank a process is", name, value, envTransport)
		}
	}
	env = JobEnv{Launched: true, Transport: "mpi"}
	if _, ok := lookup(envLinger); ok {
		env.Linger = v.duration(envLinger)
	}
	return env, true, v.err
}

// joinMPI joins the job of MPI_COMM_WORLD.
func joinMPI(env JobEnv) (transport.Endpoint, JobEnv, error) {
	ep, job, err := mpi.New(mpi.Config{Linger: env.Linger})
	if err != nil {
		return nil, env, err
	}
	env.Rank, env.Size = ep.Rank(), ep.Size()
	env.Hosts, env.Processors = job.Hosts, job.Processors
	return ep, env, nil
}

// errMPI is the error of a launcher that is to start the ranks of an MPI.
func errMPI(cfg *Config) error {
	return usagef("--transport mpi: the launcher of that MPI starts the ranks: want CHORALE_TRANSPORT=mpi mpiexec -n %d %s", cfg.Size, cfg.Program)
}
