package join

import "fmt"

// torchPorts is the number of ports above MASTER_PORT at which rank 0 may listen when
// MASTER_PORT is taken.
const torchPorts = 16

// torchrun finds the place of a worker that torchrun started, or one of the many
// launchers and scripts that set the same four variables.
//
// MASTER_PORT may be taken: the agent of the first node holds its own store there, and
// says so in TORCHELASTIC_USE_AGENT_STORE.
func torchrun(env *environment) *Place {
	if !env.has("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") {
		if env.has("RANK", "WORLD_SIZE") {
			env.miss("RANK and WORLD_SIZE are set without MASTER_ADDR and MASTER_PORT")
		}
		return nil
	}
	p := &Place{Launcher: Torchrun, Reason: env.reason("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")}
	p.Rank, p.Size = env.rankAndSize("RANK", "WORLD_SIZE")
	first := env.number("MASTER_PORT", 1, maxPort, "a port")
	p.Job = torchJob(env)
	if p.Size == 1 || env.err != nil {
		return p
	}
	if p.Rendezvous = rendezvous(env); p.Rendezvous != nil {
		return p
	}
	p.Rendezvous = &Rendezvous{Hosts: []string{env.get("MASTER_ADDR")}}
	last := first + torchPorts
	if env.get("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		first++
	}
	for port := first; port <= min(last, maxPort); port++ {
		p.Rendezvous.Ports = append(p.Rendezvous.Ports, port)
	}
	if len(p.Rendezvous.Ports) == 0 {
		env.fail("MASTER_PORT=%d is the port of torchrun's store, and no port is above it: choose a lower one, or set %s", maxPort, envRendezvous)
	}
	return p
}

const maxPort = 1<<16 - 1

// torchJob tells a job and its attempts apart: an agent that lost a worker starts all
// of them again, and ranks of the attempt before must not join.
func torchJob(env *environment) string {
	job := env.get("TORCHELASTIC_RUN_ID")
	if job == "" {
		job = env.get("MASTER_ADDR") + ":" + env.get("MASTER_PORT")
	}
	if env.has("TORCHELASTIC_RESTART_COUNT") {
		job += fmt.Sprintf(" restart %d", env.number("TORCHELASTIC_RESTART_COUNT", 0, 1<<30, "a number of restarts"))
	}
	return job
}
