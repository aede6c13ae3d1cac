package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/chorale-go/chorale/internal/clock"
	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/join"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/inproc"
	"github.com/chorale-go/chorale/transport/mixed"
	"github.com/chorale-go/chorale/transport/shm"
	"github.com/chorale-go/chorale/transport/tcp"
)

// Join returns this process's endpoint in the job in which a launcher started it, and
// what it knows of that job. A process that no launcher started gets the endpoint of the
// only rank of a job. A process joins once.
//
// Join fails if the environment is inconsistent, if the job runs its ranks as
// goroutines, or if the launcher cannot be reached or refuses the rank. In a job of
// chorale run, it returns without waiting for the other ranks; under other launchers it
// waits until all ranks have joined, 5 minutes at most, and over MPI until MPI lets it go on. If ctx ends before, Join fails
// with its cause. A process that was started in the place of a lost rank ([Config.Respawn])
// waits until others regroup with it, and gets the endpoint of that [Regroup]; if the job ends
// before, the process exits with status 0.
//
// If the launcher dies before the endpoint is closed, the process exits with
// status 1, whatever it is doing: a job does not outlive its launcher. Under other
// launchers, rank 0 takes that part: its Close waits until all ranks have left. There, the
// process exits also if another rank is lost or gives up, 5 s later: no launcher may end
// it, and a process that computes makes no call that fails.
func Join(ctx context.Context) (transport.Endpoint, JobEnv, error) {
	env, err := Environment()
	if err == nil && ctx == nil {
		err = errNoContext
	}
	if err != nil {
		return nil, env, err
	}
	if env.Transport == "inproc" {
		if env.Size > 1 {
			return nil, env, fmt.Errorf("the %d ranks of this job are goroutines of one process: use chorale.Main, or another transport than inproc", env.Size)
		}
		return inproc.New(1).Endpoint(0), env, nil
	}
	if env.Transport == "mpi" {
		return joinMPI(env)
	}
	if env.Respawned {
		return joinAsNewcomer(ctx, env)
	}
	var c *coordinator
	if env.Foreign != nil {
		if env, c, err = coordinate(ctx, env); err != nil {
			return nil, env, err
		}
	}
	a, env, err := attach(ctx, env)
	if err != nil {
		if env.rendezvous() != nil && env.Foreign.Place.Launcher == join.Slurm {
			err = fmt.Errorf("%w: srun --mpi=pmi2 needs no addresses of nodes; or set CHORALE_RENDEZVOUS to rank 0's, with a port", err)
		}
		if c != nil {
			c.abort(env.Rank, err)
		}
		return nil, env, err
	}
	if c != nil {
		c.removeSecret()
	}
	if c == nil {
		env.Regroup = a.regroupOf(env)
	}
	a.begin(env, c)
	a.logJoined(env)
	return a, env, nil
}

// attach joins the job over the transports of its environment. Where that is auto, the
// processes of a host share memory and tcp connects the hosts; a process that cannot map
// the memory uses TCP alone.
func attach(ctx context.Context, env JobEnv) (_ *attached, _ JobEnv, err error) {
	a := &attached{rank: env.jobRank(), done: make(chan struct{}), gaveUp: make(chan struct{})}
	var offer *memoryOffer
	if env.Transport == "shm" {
		a.shared, offer, a.self.Memory, err = mapMemory(env)
		switch {
		case err == nil:
		case env.Mixed:
			a.self.FallbackReason = err.Error()
		default:
			return nil, env, fmt.Errorf("rank %d: %w, or --transport tcp", env.Rank, err)
		}
	}
	if offer != nil {
		defer offer.close() // when all ranks have joined, those of this host have the memory
	}
	defer func() {
		if err != nil && a.shared != nil {
			a.shared.Close()
		}
	}()
	if env.Foreign != nil {
		a.self.Host, a.self.Processors = hostName(), processors.Available()
		if err := env.findSelections(os.Getenv(machine.Variable)); err != nil {
			return nil, env, fmt.Errorf("rank %d: %w", env.Rank, err)
		}
		a.self.Selections = machine.Digest(env.Selections)
	}
	if a.shared != nil && !env.Mixed {
		a.ProcessEndpoint = a.shared
		env, err = a.enter(ctx, env, func(netip.Addr) (control.JoinMessage, error) { return a.self, nil })
		return a, env, err
	}
	remote, env, err := a.dialTCP(ctx, env)
	if err != nil {
		return nil, env, err
	}
	a.ProcessEndpoint = remote
	if a.shared != nil {
		a.ProcessEndpoint = mixed.New(a.shared, remote, func(ctx context.Context, rank int) (bool, error) {
			theirs, err := a.launcher.MemoryOf(ctx, rank)
			return theirs == a.self.Memory, err
		})
	}
	return a, env, nil
}

// enter joins the job at its control server, and notes what that knows of the job.
func (a *attached) enter(ctx context.Context, env JobEnv, self func(local netip.Addr) (control.JoinMessage, error)) (JobEnv, error) {
	cfg, err := env.dialConfig()
	if err != nil {
		return env, err
	}
	launcher, joined, err := control.Dial(ctx, cfg, self)
	if err != nil {
		return env, err
	}
	a.launcher = launcher
	if joined.Errors {
		env.ReportError, env.ReportMetrics = launcher.ReportError, launcher.ReportMetrics
		env.ReportProfile, env.ReportTrace = launcher.ReportProfile, launcher.ReportTrace
	}
	env.HostName = hostName()
	env.CompareClocks = func() (clock.Offset, error) { return launcher.CompareClocks(env.HostName) }
	if joined.Processors > 0 {
		env.Processors = joined.Processors
	}
	if len(joined.Hosts) == env.Size {
		env.Hosts = joined.Hosts
	}
	env.takeSelections(joined)
	return env, nil
}

// dialTCP joins the job, and returns the endpoint for the ranks that exchange messages
// over TCP.
func (a *attached) dialTCP(ctx context.Context, env JobEnv) (*tcp.Endpoint, JobEnv, error) {
	var listener net.Listener
	env, err := a.enter(ctx, env, func(local netip.Addr) (_ control.JoinMessage, err error) {
		if listener == nil {
			if listener, a.self.Address, err = listenForPeers(env, local); err != nil {
				return a.self, fmt.Errorf("listening for the other ranks: %w", err)
			}
		}
		return a.self, nil
	})
	if err != nil {
		if listener != nil {
			listener.Close()
		}
		return nil, env, err
	}
	ep, err := tcp.New(tcp.Config{
		Rank: env.Rank, Size: env.Size, Secret: env.Secret,
		Listener: listener, Lookup: a.launcher.Lookup, Linger: env.Linger,
		Encrypt: env.Encrypt && env.leavesHost(), Local: env.local(),
	})
	if err != nil {
		a.launcher.Close()
		listener.Close()
		return nil, env, err
	}
	return ep, env, nil
}

// local returns the number of ranks of this host, or 0 where all share one.
func (e JobEnv) local() (n int) {
	if e.Hosts == nil {
		return 0
	}
	for _, host := range e.Hosts {
		if host == e.Hosts[e.Rank] {
			n++
		}
	}
	return n
}

// mapMemory returns the endpoint for the ranks that share memory, and the name of that
// memory: what chorale run has made for its first ranks, or what the ranks of this host
// find. Offer is what the other ranks find it by.
func mapMemory(env JobEnv) (ep *shm.Endpoint, offer *memoryOffer, name string, err error) {
	inherits := env.Foreign == nil && env.Group == 0
	if env.Memory == 0 && inherits {
		return nil, nil, "", errors.New("the launcher has made no memory on this host")
	}
	bytes, err := shm.MemoryLen(env.Size)
	if err != nil {
		return nil, nil, "", err
	}
	var file *os.File
	if inherits {
		if file, err = inherited(env.Memory, bytes); err != nil {
			err = fmt.Errorf("%w: want every process on the way from the launcher to pass it on", err)
		}
	} else {
		file, offer, err = findMemory(env)
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("the job's memory: %w", err)
	}
	if offer == nil { // which passes the file on
		defer file.Close()
	}
	if name, err = memoryName(file); err == nil {
		ep, err = shm.New(shm.Config{Rank: env.Rank, Size: env.Size, Job: env.Secret.Job(), Memory: file, Linger: env.Linger})
	}
	if err != nil {
		if offer != nil {
			offer.close()
		}
		return nil, nil, "", err
	}
	return ep, offer, name, nil
}
