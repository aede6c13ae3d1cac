package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The launchers that a [Place] names.
const (
	None       = "none"
	ByHand     = "by hand"
	Hydra      = "hydra"      // mpiexec of MPICH, and what else speaks PMI-1
	SlurmPMI   = "slurm pmi2" // srun --mpi=pmi2, of which PMI-1 is used
	OpenMPI    = "mpirun"     // mpirun of Open MPI
	SlurmPMIx  = "slurm pmix" // srun --mpi=pmix
	PMIx       = "pmix"       // another PMIx server
	Slurm      = "slurm"      // srun without a key store
	Torchrun   = "torchrun"   // or what else sets its variables
	Kubernetes = "kubernetes" // an Indexed Job
)

// maxRanks bounds the size of a job: a launcher that claims more is wrong.
const maxRanks = 1 << 20

// unknown is a rank or a size that only the launcher's server knows.
const unknown = -1

// A Place is a process's place in a job, as its environment says. It holds no secret.
type Place struct {
	Launcher string // one of the constants of this package
	Reason   string // the variables that say so; for None, those that do not suffice
	Rank     int    // -1 if only the launcher's server knows it
	Size     int    // the number of ranks; -1 if only the launcher's server knows it

	// Job tells the job, or this attempt at it, from others that may share its secret.
	// It is empty if only the launcher's server knows it.
	Job string

	// Rendezvous is nil if the launcher has a key store, or if there is one rank.
	Rendezvous *Rendezvous

	// connect opens the session with the launcher's server; nil without a key store.
	connect func(context.Context, *Place) (store, error)
	claimed int // the size that CHORALE_SIZE claims; 0 if it is not set
}

// A Rendezvous is where rank 0 listens when the launcher has no key store. Rank 0
// listens at the first of the ports that is free. The other ranks dial every host at
// every port, in order, until a handshake proves that rank 0 of this job answers.
type Rendezvous struct {
	Hosts []string // names or addresses that may be those of rank 0's host, the likeliest first
	Ports []int    // candidates, in order

	// LookupLimit is how long a rank goes on when the name of the host does not
	// resolve, because it will do so later. 0 means that the first failure counts.
	LookupLimit time.Duration
}

// Find returns the place in a job that the environment describes. The place of a
// process that no launcher has started is that of the only rank of a job. Lookup is
// [os.LookupEnv], or a test's.
//
// Variables that contradict each other, or that are out of range, are an error that
// names them. The variables of chorale's own launcher are the caller's business, who
// looks for them first.
//
// Find opens nothing and sends nothing. A process calls it before [Place.Connect],
// which takes over the descriptor that PMI_FD names.
func Find(lookup func(string) (string, bool)) (Place, error) {
	return find(lookup, thisHost)
}

// launchers are the ways to find a place, in the order of detection. Each returns nil
// if its variables are not complete.
var launchers = []func(*environment) *Place{
	byHand, pmi, pmix, torchrun, slurm, kubernetes,
}

func find(lookup func(string) (string, bool), h host) (Place, error) {
	env := &environment{lookup: lookup, host: h}
	for _, launcher := range launchers {
		place := launcher(env)
		if env.err == nil && place != nil {
			env.err = place.claim(env)
		}
		if env.err != nil {
			return Place{}, env.err
		}
		if place != nil {
			return *place, nil
		}
	}
	return alone(env)
}

// alone is the place of a process that no launcher has started.
func alone(env *environment) (Place, error) {
	for _, name := range []string{envRendezvous, envSize} {
		if env.has(name) {
			return Place{}, fmt.Errorf("%s is set, but nothing says this process's rank: set %s, %s and %s, or start the program by a launcher",
				name, envRendezvous, envRank, envSize)
		}
	}
	reason := "no launcher's variables are set"
	if len(env.misses) > 0 {
		reason = strings.Join(env.misses, "; ")
	}
	return Place{Launcher: None, Reason: reason, Rank: 0, Size: 1}, nil
}

// claim notes the size that the user claims.
func (p *Place) claim(env *environment) error {
	if !env.has(envSize) {
		return nil
	}
	p.claimed = env.number(envSize, 1, maxRanks, "a number of ranks")
	if env.err != nil {
		return env.err
	}
	return p.check()
}

// check returns an error if rank and size of the launcher cannot be, or if its size is
// not the one that the user claims.
func (p *Place) check() error {
	if p.Size == unknown {
		return nil
	}
	if p.Size < 1 || p.Size > maxRanks {
		return fmt.Errorf("%s: the launcher says that the job has %d ranks: want a number from 1 to %d", p.Reason, p.Size, maxRanks)
	}
	if p.Rank < 0 || p.Rank >= p.Size {
		return fmt.Errorf("%s: the launcher says that this is rank %d of %d: want a rank below the size", p.Reason, p.Rank, p.Size)
	}
	if p.claimed != 0 && p.claimed != p.Size {
		return fmt.Errorf("%s=%d contradicts %s, which says that the job has %d ranks: unset one of them", envSize, p.claimed, p.Reason, p.Size)
	}
	return nil
}

// Connect opens the session with the launcher's server, and completes Rank, Size and
// Job. The session is nil if the launcher has no key store. Connect is called once.
//
// Every answer of the server is waited for until ctx ends, and for 60 s at most.
func (p *Place) Connect(ctx context.Context) (*Session, error) {
	if p.connect == nil {
		return nil, nil
	}
	store, err := p.connect(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Reason, err)
	}
	if err = p.check(); err == nil && p.Size == unknown {
		err = errors.New(p.Reason + ": the launcher does not say how many ranks the job has")
	}
	if err != nil {
		store.close()
		return nil, err
	}
	return &Session{store: store, rank: p.Rank, name: p.Reason}, nil
}
