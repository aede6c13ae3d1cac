// Package join finds a process's place in the job in which a foreign launcher
// started it: mpiexec of MPICH, mpirun of Open MPI, Slurm, torchrun, Kubernetes, or
// a user by hand.
//
//	place, err := join.Find(os.LookupEnv)
//	session, err := place.Connect(ctx)      // fills place.Rank and place.Size; nil without a key store
//	value, err := session.Share(ctx, value) // rank 0's value reaches all ranks
//
// # Two kinds of launchers
//
// Some launchers run a server, which holds a key store for the job, waits for all
// ranks in a fence, and is told when the job fails. Package join speaks two protocols
// to it, PMI-1 and PMIx: [Place.Connect] returns a [Session]. Rank 0 shares with
// all ranks where it listens, and the secret of the job.
//
// The other launchers say rank and size alone. Then a [Rendezvous] names the hosts and
// ports at which rank 0 may listen, and the secret has to come from the user.
//
// # Detection
//
// [Find] takes the first launcher whose variables are complete, in the order of the
// table launchers. The order matters because launchers run inside of each other:
// a rank that mpiexec started inside a Slurm step sees Slurm's variables too, but they
// describe mpiexec's own process. Processes that a rank starts inherit all of these
// variables; [WithoutPlace] removes them.
package join
