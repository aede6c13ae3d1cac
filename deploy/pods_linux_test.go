package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/chorale-go/chorale/internal/testenv"
)

// The pods have what Kubernetes and the file give them: an index, the variables, and a name
// with a domain, under which the others find them.
func TestThePodsOfAFileAddUp(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Skip(t, "this user is not root, and cannot make the namespaces of pods")
	}
	program := filepath.Join(build(t), "out/program")
	for _, name := range []string{"job", "jobset"} {
		t.Run(name, func(t *testing.T) {
			for _, document := range strings.Split(read(t, "kubernetes/"+name+".yaml"), "\n---\n") {
				object, err := parse(document)
				if err != nil {
					t.Fatal(err)
				}
				switch o := object.(type) {
				case *batchv1.Job:
					runPods(t, program, o.Name, o.Spec.Template.Spec.Subdomain, &o.Spec)
				case *jobsetv1alpha2.JobSet:
					job := o.Spec.ReplicatedJobs[0]
					runPods(t, program, o.Name+"-"+job.Name+"-0", o.Name, &job.Template.Spec)
				}
			}
		})
	}
}

// podsScript runs a program in pods. Each has a name of its own; all share a network.
const podsScript = `set -e
name=$1 hosts=$2 pods=$3 program=$4
ip link set lo up
for i in $(seq 0 $((pods - 1))); do
	JOB_COMPLETION_INDEX=$i unshare --mount --uts sh -c 'hostname "$1" && mount --bind "$2" /etc/hosts && exec "$3"' pod "$name-$i" "$hosts" "$program" &
done
wait
`

func runPods(t *testing.T, program, name, subdomain string, job *batchv1.JobSpec) {
	t.Helper()
	hosts := "127.0.0.1 localhost\n"
	for i := range *job.Completions {
		hosts += fmt.Sprintf("127.0.0.%d %s-%d.%s.default.svc.cluster.local %[2]s-%d\n", 2+i, name, i, subdomain, i)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("unshare", "--net", "timeout", "60", "sh", "-c", podsScript, "sh", name, file, fmt.Sprint(*job.Parallelism), program)
	c.Env = append(os.Environ(), "CHORALE_TOKEN="+strings.Repeat("token of a test ", 2))
	for _, v := range job.Template.Spec.Containers[0].Env {
		if v.ValueFrom == nil {
			c.Env = append(c.Env, v.Name+"="+v.Value)
		}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for rank := range *job.Completions {
		if want := fmt.Sprintf("sum 6 on rank %d", rank); !strings.Contains(string(out), want) {
			t.Errorf("no pod says %q:\n%s", want, out)
		}
	}
}
