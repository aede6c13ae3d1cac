package join

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// vars are the variables of an environment: "A=1 B=2".
func vars(text string) map[string]string {
	set := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		set[name] = value
	}
	return set
}

func lookupIn(set map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := set[name]
		return value, ok
	}
}

// pod is what a process sees in the pod of a Job with a subdomain.
var pod = host{
	name: func() (string, error) { return "ring-2", nil },
	names: func() ([]byte, error) {
		return []byte("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n10.244.1.7\tring-2.rings.default.svc.cluster.local\tring-2\n"), nil
	},
}

const (
	batch     = "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_JOB_NODELIST=n[1-2]"
	step      = "SLURM_JOB_ID=7 SLURM_STEP_ID=3 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_STEP_NODELIST=n[08-10] SLURM_STEP_TASKS_PER_NODE=2,1(x2)"
	torch     = "RANK=1 WORLD_SIZE=4 MASTER_ADDR=node0.example MASTER_PORT=29500"
	indexed   = "JOB_COMPLETION_INDEX=2 CHORALE_SIZE=4"
	manual    = "CHORALE_RANK=1 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=[2001:db8::7]:4711"
	openMPI   = "PMIX_NAMESPACE=1141899265 PMIX_RANK=1 PMIX_SERVER_URI21=1141899264.0;tcp4://127.0.0.1:44917 PMIX_SECURITY_MODE=native OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4"
	slurmPMIx = "PMIX_NAMESPACE=slurm.pmix.31.0 PMIX_RANK=3 PMIX_SERVER_URI2=s;tcp4://127.0.0.1:1 PMIX_SERVER_URI3=slurm.pmix.31.0.1;tcp6://[::1]:44917"
	hydraPort = "PMI_PORT=node0:35001 PMI_ID=2"
)

// ports are n ports from the first on.
func ports(first, n int) (list []int) {
	for i := range n {
		list = append(list, first+i)
	}
	return list
}

func TestTheEnvironmentSaysTheLauncherAndThePlace(t *testing.T) {
	slurmHosts := []string{"n08", "n09", "n10"}
	fromUser := &Rendezvous{Hosts: []string{"h"}, Ports: []int{9}}
	for _, test := range []struct {
		vars string
		want Place // without Reason
	}{
		{"", Place{Launcher: None, Size: 1}},
		{"PATH=/bin RANK=3", Place{Launcher: None, Size: 1}},

		{manual, Place{Launcher: ByHand, Rank: 1, Size: 3, Job: "[2001:db8::7]:4711", Rendezvous: &Rendezvous{Hosts: []string{"2001:db8::7"}, Ports: []int{4711}}}},
		{manual + " " + step + " " + openMPI, Place{Launcher: ByHand, Rank: 1, Size: 3, Job: "[2001:db8::7]:4711", Rendezvous: &Rendezvous{Hosts: []string{"2001:db8::7"}, Ports: []int{4711}}}},
		{"CHORALE_RANK=0 CHORALE_SIZE=1", Place{Launcher: ByHand, Size: 1}},

		{hydraPort, Place{Launcher: Hydra, Rank: -1, Size: -1}},
		{hydraPort + " " + step, Place{Launcher: Hydra, Rank: -1, Size: -1}},                                   // mpiexec in a step
		{hydraPort + " CHORALE_RENDEZVOUS=h:9", Place{Launcher: Hydra, Rank: -1, Size: -1}},                    // the store is better
		{"PMI_RANK=1 PMI_SIZE=4 " + batch, Place{Launcher: None, Size: 1}},                                     // HPE Cray PALS
		{"PMI_FD=987654 PMI_RANK=1 PMI_SIZE=4", Place{Launcher: None, Size: 1}},                                // a child of a rank
		{"PMI_FD=987654 PMI_RANK=1 PMI_SIZE=4 " + hydraPort, Place{Launcher: Hydra, Rank: -1, Size: -1}},       // mpiexec in a rank
		{"PMI_FD=987654 PMI_RANK=1 " + openMPI, Place{Launcher: OpenMPI, Rank: 1, Size: 4, Job: "1141899265"}}, // mpirun in a task
		{openMPI + " " + torch, Place{Launcher: OpenMPI, Rank: 1, Size: 4, Job: "1141899265"}},                 // with torch's variables for others
		{slurmPMIx + " " + step, Place{Launcher: SlurmPMIx, Rank: 3, Size: -1, Job: "slurm.pmix.31.0"}},        // srun --mpi=pmix
		{"PMIX_NAMESPACE=x@1 PMIX_RANK=0 PMIX_SERVER_URI3=a;tcp4://h:1;x", Place{Launcher: PMIx, Size: -1, Job: "x@1"}},
		{"PMIX_NAMESPACE=x@1", Place{Launcher: None, Size: 1}},

		{torch, Place{Launcher: Torchrun, Rank: 1, Size: 4, Job: "node0.example:29500", Rendezvous: &Rendezvous{Hosts: []string{"node0.example"}, Ports: ports(29500, 17)}}},
		{torch + " TORCHELASTIC_USE_AGENT_STORE=False TORCHELASTIC_RUN_ID=r1 TORCHELASTIC_RESTART_COUNT=2 " + step,
			Place{Launcher: Torchrun, Rank: 1, Size: 4, Job: "r1 restart 2", Rendezvous: &Rendezvous{Hosts: []string{"node0.example"}, Ports: ports(29500, 17)}}},
		{torch + " TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=none",
			Place{Launcher: Torchrun, Rank: 1, Size: 4, Job: "none", Rendezvous: &Rendezvous{Hosts: []string{"node0.example"}, Ports: ports(29501, 16)}}},
		{"RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=65535", Place{Launcher: Torchrun, Size: 2, Job: "h:65535", Rendezvous: &Rendezvous{Hosts: []string{"h"}, Ports: []int{65535}}}},
		{"RANK=0 WORLD_SIZE=1 MASTER_ADDR=h MASTER_PORT=1", Place{Launcher: Torchrun, Size: 1, Job: "h:1"}},
		{torch + " CHORALE_RENDEZVOUS=h:9", Place{Launcher: Torchrun, Rank: 1, Size: 4, Job: "node0.example:29500", Rendezvous: fromUser}},
		{"RANK=1 WORLD_SIZE=4 MASTER_ADDR=h", Place{Launcher: None, Size: 1}},

		{step, Place{Launcher: Slurm, Rank: 2, Size: 4, Job: "7.3", Rendezvous: &Rendezvous{Hosts: slurmHosts, Ports: ports(26417, 16)}}},
		{step + " SLURM_STEP_RESV_PORTS=12001-12002,12007", Place{Launcher: Slurm, Rank: 2, Size: 4, Job: "7.3", Rendezvous: &Rendezvous{Hosts: slurmHosts, Ports: []int{12001, 12002, 12007}}}},
		{step + " SLURM_RESTART_COUNT=1 CHORALE_RENDEZVOUS=h:9", Place{Launcher: Slurm, Rank: 2, Size: 4, Job: "7.3 restart 1", Rendezvous: fromUser}},
		{"SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", Place{Launcher: Slurm, Size: 1, Job: "7.0"}},
		{batch, Place{Launcher: None, Size: 1}},
		{step + " SLURM_STEP_ID=4294967291", Place{Launcher: None, Size: 1}}, // the batch script's step
		{step + " SLURM_STEP_ID=-5", Place{Launcher: None, Size: 1}},

		{indexed, Place{Launcher: Kubernetes, Rank: 2, Size: 4, Job: "ring-0.rings.default.svc.cluster.local.",
			Rendezvous: &Rendezvous{Hosts: []string{"ring-0.rings.default.svc.cluster.local."}, Ports: []int{24672}, LookupLimit: 5 * time.Minute}}},
		{indexed + " CHORALE_RENDEZVOUS=h:9", Place{Launcher: Kubernetes, Rank: 2, Size: 4, Job: "h", Rendezvous: &Rendezvous{Hosts: []string{"h"}, Ports: []int{9}, LookupLimit: 5 * time.Minute}}},
		{"JOB_COMPLETION_INDEX=0 CHORALE_SIZE=1", Place{Launcher: Kubernetes, Size: 1}},
		{"JOB_COMPLETION_INDEX=2", Place{Launcher: None, Size: 1}},
	} {
		got, err := find(lookupIn(vars(test.vars)), pod)
		if err != nil {
			t.Errorf("%s: %v", test.vars, err)
			continue
		}
		if got.Reason == "" {
			t.Errorf("%s: no reason", test.vars)
		}
		got.Reason, got.connect, got.claimed = "", nil, 0
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\ngot  %+v %+v\nwant %+v %+v", test.vars, got, got.Rendezvous, test.want, test.want.Rendezvous)
		}
	}
}

func TestVariablesThatCannotBeAreErrorsThatNameThem(t *testing.T) {
	for _, test := range []struct{ vars, want string }{
		{"CHORALE_SIZE=4", "CHORALE_SIZE is set, but nothing says this process's rank"},
		{"CHORALE_RENDEZVOUS=h:1 " + batch, "CHORALE_RENDEZVOUS is set, but nothing says this process's rank"},
		{"CHORALE_RANK=1", "CHORALE_SIZE is not set, but CHORALE_RANK is"},
		{"CHORALE_RANK=1 CHORALE_SIZE=2", "CHORALE_RENDEZVOUS is not set, but CHORALE_RANK is"},
		{"CHORALE_RANK=3 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=h:1", "CHORALE_RANK=3 and CHORALE_SIZE=3 contradict each other"},
		{"CHORALE_RANK=-1 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=h:1", `CHORALE_RANK="-1": want a rank from 0`},
		{"CHORALE_RANK=1 CHORALE_SIZE=3000000 CHORALE_RENDEZVOUS=h:1", `CHORALE_SIZE="3000000": want a number of ranks from 1 to 1048576`},
		{"CHORALE_RANK=1 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=h", `CHORALE_RENDEZVOUS="h": want the host of rank 0 and a port, as in node7:4711`},
		{"CHORALE_RANK=1 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=:1", `CHORALE_RENDEZVOUS=":1"`},
		{"CHORALE_RANK=1 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=h:0", `CHORALE_RENDEZVOUS="h:0"`},
		{"CHORALE_RANK=1 CHORALE_SIZE=3 CHORALE_RENDEZVOUS=h:65536", `CHORALE_RENDEZVOUS="h:65536"`},

		{"PMI_FD=x", `PMI_FD="x": want a file descriptor`},
		{"PMI_PORT=h:1", "PMI_ID is not set, but PMI_PORT is"},
		{"PMI_PORT=h PMI_ID=1", `PMI_PORT="h": want HOST:PORT`},
		{"PMI_PORT=h:1 PMI_ID=a", `PMI_ID="a"`},

		{"PMIX_NAMESPACE=n PMIX_RANK=0", "neither PMIX_SERVER_URI21 nor PMIX_SERVER_URI3 is"},
		{"PMIX_NAMESPACE=n PMIX_RANK=0 PMIX_SERVER_URI41=n;tcp4://h:1", "neither PMIX_SERVER_URI21 nor PMIX_SERVER_URI3 is"},
		{"PMIX_NAMESPACE=n PMIX_RANK=4294967294 PMIX_SERVER_URI3=n;tcp4://h:1", `PMIX_RANK="4294967294"`},
		{"PMIX_NAMESPACE=n PMIX_RANK=0 PMIX_SERVER_URI3=n;usock://h:1", `PMIX_SERVER_URI3="n;usock://h:1": want SERVER;tcp4://`},
		{"PMIX_NAMESPACE=n PMIX_RANK=0 PMIX_SERVER_URI3=tcp4://h:1", `PMIX_SERVER_URI3="tcp4://h:1"`},
		{"PMIX_NAMESPACE=n PMIX_RANK=0 PMIX_SERVER_URI3=n;tcp4://h", `PMIX_SERVER_URI3="n;tcp4://h"`},
		{"PMIX_NAMESPACE=" + strings.Repeat("n", 256) + " PMIX_RANK=0 PMIX_SERVER_URI3=n;tcp4://h:1", "PMIX_NAMESPACE has 256 bytes: want at most 255"},
		{openMPI + " PMIX_SECURITY_MODE=munge", `PMIX_SECURITY_MODE="munge": want native`},
		{openMPI + " OMPI_COMM_WORLD_RANK=2", `OMPI_COMM_WORLD_RANK="2" and PMIX_RANK=1 contradict each other`},
		{openMPI + " OMPI_COMM_WORLD_SIZE=1", "PMIX_RANK=1 and OMPI_COMM_WORLD_SIZE=1 contradict each other"},
		{openMPI + " CHORALE_SIZE=5", "CHORALE_SIZE=5 contradicts PMIX_NAMESPACE=1141899265 PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=4, which says that the job has 4 ranks"},

		{torch + " RANK=4", "RANK=4 and WORLD_SIZE=4 contradict each other"},
		{torch + " MASTER_PORT=0", `MASTER_PORT="0": want a port from 1 to 65535`},
		{torch + " MASTER_PORT=65535 TORCHELASTIC_USE_AGENT_STORE=True", "no port is above it"},
		{torch + " TORCHELASTIC_RESTART_COUNT=x", `TORCHELASTIC_RESTART_COUNT="x"`},

		{step + " SLURM_PROCID=4", "SLURM_PROCID=4 and SLURM_STEP_NUM_TASKS=4 contradict each other"},
		{step + " SLURM_JOB_ID=", "SLURM_JOB_ID is not set, but SLURM_STEP_ID is"},
		{step + " SLURM_STEP_NODELIST=", "SLURM_STEP_NODELIST is not set, but SLURM_STEP_ID is"},
		{step + " SLURM_STEP_NODELIST=n[1-", "a bracket is not closed: use srun --mpi=pmi2, or set CHORALE_RENDEZVOUS"},
		{step + " SLURM_STEP_TASKS_PER_NODE=4", "4 tasks on 1 nodes, 3 names of nodes: use srun --mpi=pmi2"},
		{step + " SLURM_STEP_TASKS_PER_NODE=2(x", `"2(x" is no number of tasks`},
		{step + " SLURM_STEP_RESV_PORTS=5-4", `SLURM_STEP_RESV_PORTS="5-4": "5-4" is no range of ports`},
		{step + " CHORALE_SIZE=5", "CHORALE_SIZE=5 contradicts SLURM_JOB_ID=7"},

		{indexed + " JOB_COMPLETION_INDEX=4", "JOB_COMPLETION_INDEX=4 and CHORALE_SIZE=4 contradict each other"},
		{indexed + " JOB_COMPLETION_INDEX=1", `the host name "ring-2" of the pod with JOB_COMPLETION_INDEX=1 does not end in -1, as it does with hostNetwork: set CHORALE_RENDEZVOUS`},
	} {
		got, err := find(lookupIn(vars(test.vars)), pod)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %+v, error %v, want one with %s", test.vars, got, err, test.want)
		}
	}
}

func TestAPodFindsTheNameOfRank0(t *testing.T) {
	for _, test := range []struct {
		name, hosts string
		want        string // a host, or a part of an error
	}{
		{"ring-2", "10.0.0.7 ring-2.sub.ns.svc.cluster.local ring-2", "ring-0.sub.ns.svc.cluster.local."},
		{"ring-2.sub.ns.svc.cluster.local", "", "ring-0.sub.ns.svc.cluster.local."}, // setHostnameAsFQDN
		{"set-workers-0-2", "10.0.0.7 set-workers-0-2.set.ns.svc.c.l. set-workers-0-2", "set-workers-0-0.set.ns.svc.c.l."},
		{"2-2", "fd00::7\t2-2.a.b", "2-0.a.b."},
		{"ring-2", "10.0.0.7 ring-22.sub.ns ring-22", `the pod "ring-2" has no name in DNS: set subdomain`},
		{"ring-2", "# 10.0.0.7 ring-2.sub.ns", "has no name in DNS"},
		{"ring-12", "", "does not end in -2"},
		{"-2", "", "does not end in -2"},
		{"gke-node-7", "", "does not end in -2"},
		{"", "", "the name of this pod: no name"},
	} {
		place, err := find(lookupIn(vars(indexed)), host{
			name: func() (string, error) {
				if test.name == "" {
					return "", errors.New("no name")
				}
				return test.name, nil
			},
			names: func() ([]byte, error) { return []byte(test.hosts), nil },
		})
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		case err == nil && place.Rendezvous.Hosts[0] != test.want:
			t.Errorf("%s: %s, want %s", test.name, place.Rendezvous.Hosts[0], test.want)
		}
	}
}

func TestAProcessWithoutAPlaceSaysWhatIsMissing(t *testing.T) {
	for _, test := range []struct{ vars, want string }{
		{"", "no launcher's variables are set"},
		{batch, "SLURM_PROCID is set without SLURM_STEP_ID, as in a batch script: srun starts the ranks"},
		{"PMI_RANK=1 RANK=1 WORLD_SIZE=2", "PMI_RANK is set without PMI_FD or PMI_PORT, as HPE Cray PALS does; RANK and WORLD_SIZE are set without MASTER_ADDR and MASTER_PORT"},
		{"PMI_FD=987654", "PMI_FD=987654 is not an open connection, as in a child of a rank"},
		{"JOB_COMPLETION_INDEX=2", "JOB_COMPLETION_INDEX is set without CHORALE_SIZE, the number of the Job's completions"},
	} {
		if p, err := find(lookupIn(vars(test.vars)), pod); err != nil || p.Reason != test.want {
			t.Errorf("%s: %q, %v, want %q", test.vars, p.Reason, err, test.want)
		}
	}
}

// words is an environment as [os.Environ] returns it.
func words(set map[string]string) (env []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

func TestWhatARankStartsHasNoPlace(t *testing.T) {
	for _, set := range []string{manual, step, torch, indexed, openMPI, slurmPMIx, hydraPort, "CHORALE_SIZE=3", "CHORALE_RENDEZVOUS=x"} {
		kept := "HOME=/root SLURM_JOB_ID=7 RANKS=1"
		env := WithoutPlace(words(vars(kept + " " + set)))
		p, err := find(lookupIn(vars(strings.Join(env, " "))), pod)
		if err != nil || p.Launcher != None {
			t.Errorf("%s: %+v, %v", set, p, err)
		}
		for _, v := range strings.Fields(kept) {
			if !slices.Contains(env, v) {
				t.Errorf("%s: %s is gone", set, v)
			}
		}
	}
	alone := []string{"RANK=gold", "MASTER_PORT=Rotterdam", "SLURM_PROCID=0"}
	if got := WithoutPlace(alone); !slices.Equal(got, alone) {
		t.Errorf("%q became %q", alone, got)
	}
}
