package join

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

const (
	// lastStep is the last number of a step of tasks. Those above are the batch
	// script's, the interactive step's and the like.
	lastStep = 0xfffffff0 - 1

	// Rank 0 of a step without a key store listens at one of slurmTries ports, from
	// slurmPort plus a hash below slurmSpan on. They are below those that kernels give
	// to connections.
	slurmPort  = 20000
	slurmSpan  = 10000
	slurmTries = 16
)

// slurm finds the place of a task of a Slurm step that has no key store, because srun
// was called with --mpi=none or the site's default is none.
//
// A batch script has SLURM_PROCID and SLURM_NTASKS too, although it is one process: a
// step has SLURM_STEP_ID. The variables of the job may speak of other tasks than the
// step has, so only the step's count.
func slurm(env *environment) *Place {
	if !env.has("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS") {
		if env.has("SLURM_PROCID") {
			env.miss("SLURM_PROCID is set without SLURM_STEP_ID, as in a batch script: srun starts the ranks")
		}
		return nil
	}
	step, err := strconv.ParseInt(env.get("SLURM_STEP_ID"), 10, 64)
	if err != nil || step < 0 || step > lastStep {
		env.miss("SLURM_STEP_ID=%.80q is no step of tasks", env.get("SLURM_STEP_ID"))
		return nil
	}
	p := &Place{Launcher: Slurm, Reason: env.reason("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", envRendezvous)}
	p.Rank, p.Size = env.rankAndSize("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
	p.Job = fmt.Sprintf("%s.%d", env.require("SLURM_JOB_ID", "SLURM_STEP_ID"), step)
	if env.has("SLURM_RESTART_COUNT") { // a job that was requeued keeps its number
		p.Job += fmt.Sprintf(" restart %d", env.number("SLURM_RESTART_COUNT", 0, 1<<30, "a number of restarts"))
	}
	if p.Size == 1 || env.err != nil {
		return p
	}
	if p.Rendezvous = rendezvous(env); p.Rendezvous == nil && env.err == nil {
		p.Rendezvous = &Rendezvous{Hosts: slurmHosts(env, p.Size), Ports: slurmPorts(env, p.Job)}
	}
	return p
}

// slurmHosts returns the names of the step's nodes. Rank 0 is on the first of them,
// unless the user distributes the tasks arbitrarily. The names are Slurm's, and a site
// need not let them resolve.
func slurmHosts(env *environment, size int) []string {
	const advice = "use srun --mpi=pmi2, or set " + envRendezvous
	hosts, err := expandHosts(env.require("SLURM_STEP_NODELIST", "SLURM_STEP_ID"))
	if err != nil {
		env.fail("SLURM_STEP_NODELIST=%.300q: %w: %s", env.get("SLURM_STEP_NODELIST"), err, advice)
		return nil
	}
	if !env.has("SLURM_STEP_TASKS_PER_NODE") {
		return hosts
	}
	tasks, err := expandTasks(env.get("SLURM_STEP_TASKS_PER_NODE"))
	if err != nil {
		env.fail("SLURM_STEP_TASKS_PER_NODE=%.300q: %w: %s", env.get("SLURM_STEP_TASKS_PER_NODE"), err, advice)
		return nil
	}
	sum := 0
	for _, n := range tasks {
		sum += n
	}
	if sum != size || len(tasks) != len(hosts) {
		env.fail("SLURM_STEP_TASKS_PER_NODE=%.300s, SLURM_STEP_NODELIST=%.300s and SLURM_STEP_NUM_TASKS=%d contradict each other: %d tasks on %d nodes, %d names of nodes: %s",
			env.get("SLURM_STEP_TASKS_PER_NODE"), env.get("SLURM_STEP_NODELIST"), size, sum, len(tasks), len(hosts), advice)
	}
	return hosts
}

// slurmPorts returns the ports at which rank 0 may listen: those that Slurm reserved
// for the step, or some that follow from the job. Steps that run at the same time
// probably start at different ports.
func slurmPorts(env *environment, job string) (ports []int) {
	if env.has("SLURM_STEP_RESV_PORTS") {
		ports, err := expandPorts(env.get("SLURM_STEP_RESV_PORTS"))
		if err != nil {
			env.fail("SLURM_STEP_RESV_PORTS=%.300q: %w", env.get("SLURM_STEP_RESV_PORTS"), err)
		}
		return ports
	}
	hash := fnv.New32a()
	hash.Write([]byte(job))
	for i := range slurmTries {
		ports = append(ports, slurmPort+(int(hash.Sum32()%slurmSpan)+i)%slurmSpan)
	}
	return ports
}

// expandTasks returns the numbers of tasks on each node of a step: 2,1(x2) is 2, 1, 1.
func expandTasks(text string) (tasks []int, err error) {
	for item := range strings.SplitSeq(text, ",") {
		count, repeat, repeated := strings.Cut(item, "(x")
		times := uint64(1)
		n, err := strconv.ParseUint(count, 10, 31)
		if repeated && err == nil {
			var closed bool
			if repeat, closed = strings.CutSuffix(repeat, ")"); !closed {
				err = strconv.ErrSyntax
			} else {
				times, err = strconv.ParseUint(repeat, 10, 31)
			}
		}
		if err != nil || n == 0 || n > maxRanks || times == 0 {
			return nil, fmt.Errorf("%.80q is no number of tasks, as in 2 or 1(x2)", item)
		}
		if uint64(len(tasks))+times > maxHosts {
			return nil, fmt.Errorf("there are more than %d nodes", maxHosts)
		}
		for range times {
			tasks = append(tasks, int(n))
		}
	}
	return tasks, nil
}

// expandPorts returns the ports of a list of ranges: 12001-12002,12007.
func expandPorts(text string) (ports []int, err error) {
	for item := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		lo, err := strconv.ParseUint(first, 10, 16)
		hi, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || lo == 0 || lo > hi {
			return nil, fmt.Errorf("%.80q is no range of ports, as in 12001-12002", item)
		}
		for port := lo; port <= hi && len(ports) < slurmTries; port++ {
			ports = append(ports, int(port))
		}
	}
	return ports, nil
}
