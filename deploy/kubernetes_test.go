package deploy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// files are the files with objects of Kubernetes.
func files(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no files: %v", err)
	}
	return names
}

func TestKubernetesTakesTheFiles(t *testing.T) {
	for _, name := range files(t) {
		if err := checkFile(t, read(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each mistake is one that a person could make in a file, and is found.
func TestAMistakeInAFileIsFound(t *testing.T) {
	for _, test := range []struct{ file, old, new, want string }{
		// What the Go types say.
		{"job", "completionMode: Indexed", "completionmode: Indexed", `unknown field "spec.completionmode"`},
		{"job", `value: "4"`, "value: 4", "string"},
		{"job", "parallelism: 4", "completions: 4", `"completions" already set`},
		{"jobset", "enableDNSHostnames", "enableDNSHostNames", `unknown field "spec.network.enableDNSHostNames"`},
		// What the schemas say.
		{"job", "        - name: rank\n          image", "        - image", "name in body is required"},
		{"job", "key: token", "optional: false", "key in body is required"},
		{"jobset", "    - name: ranks\n      replicas: 1", "    - replicas: 1", "name in body is required"},
		{"jobset", "                - name: rank\n                  image", "                - image", "name in body is required"},
		// What chorale needs.
		{"job", "completionMode: Indexed", "completionMode: NonIndexed", "want completionMode Indexed"},
		{"job", "completions: 4", "completions: 5", "want as many completions as CHORALE_SIZE"},
		{"job", "parallelism: 4", "parallelism: 2", "want as much parallelism as completions"},
		{"job", `value: "4"`, `value: "8"`, "want as many completions as CHORALE_SIZE"},
		{"job", "backoffLimit: 0", "backoffLimit: 6", "want backoffLimit 0"},
		{"jobset", "backoffLimit: 0", "backoffLimit: 1", "want backoffLimit 0"},
		{"job", "restartPolicy: Never", "restartPolicy: OnFailure", "want restartPolicy Never"},
		{"job", "subdomain: globalsum", "subdomain: sum", `want the Service "globalsum"`},
		{"job", "job-name: globalsum\n---", "job-name: sum\n---", "want the Service to select the pods of the Job"},
		{"job", "clusterIP: None", "clusterIP: 10.0.0.1", "want a headless Service"},
		{"job", "publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "want publishNotReadyAddresses"},
		{"job", "name: globalsum-token\n", "name: token\n", "want the Secret"},
		{"jobset", "name: globalsum-token\n", "name: token\n", "want the Secret"},
		{"job", "name: CHORALE_TOKEN", "name: TOKEN", "want CHORALE_TOKEN from a Secret"},
		{"job", "globalsum:1", "globalsum:2", "want the image"},
		{"jobset", "replicas: 1", "replicas: 2", "want 1 replica"},
		{"jobset", "maxRestarts: 3", "maxRestarts: 0", "want restarts"},
		{"jobset", "enableDNSHostnames: true", "enableDNSHostnames: false", "want names of pods"},
		{"onepod", "backoffLimit: 0", "backoffLimit: 1", "want backoffLimit 0"},
		{"onepod", `"run"`, `"ran"`, "want chorale run"},
	} {
		text := read(t, "kubernetes/"+test.file+".yaml")
		wrong := strings.Replace(text, test.old, test.new, 1)
		if wrong == text {
			t.Errorf("%s.yaml has no %q", test.file, test.old)
		} else if err := checkFile(t, wrong); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s.yaml with %q: got %v, want %q", test.file, test.new, err, test.want)
		}
	}
}

// checkFile checks the objects of a file, each alone and all together.
func checkFile(t *testing.T, text string) error {
	t.Helper()
	c := checker{text: text, image: image(t)}
	for _, document := range strings.Split(text, "\n---\n") {
		object, err := parse(document)
		if err != nil {
			return err
		}
		c.objects = append(c.objects, object)
	}
	for _, object := range c.objects {
		switch o := object.(type) {
		case *batchv1.Job:
			c.job(o.Name, &o.Spec)
		case *jobsetv1alpha2.JobSet:
			c.jobSet(o)
		}
	}
	return errors.Join(c.errs...)
}

// A checker checks what neither types nor schemas say.
type checker struct {
	text    string
	image   string // that the Dockerfile makes
	objects []any
	errs    []error
}

func (c *checker) want(ok bool, format string, args ...any) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf("want "+format, args...))
	}
}

// job checks a Job that no JobSet contains.
func (c *checker) job(name string, job *batchv1.JobSpec) {
	if job.CompletionMode == nil {
		c.alone(job)
		return
	}
	c.ranks(name+"-3", job)
	service := find[*corev1.Service](c.objects)
	if service == nil {
		c.want(false, "a Service")
		return
	}
	c.want(job.Template.Spec.Subdomain == service.Name, "the Service %q as subdomain, not %q", service.Name, job.Template.Spec.Subdomain)
	c.want(service.Spec.ClusterIP == corev1.ClusterIPNone, "a headless Service")
	c.want(service.Spec.PublishNotReadyAddresses, "publishNotReadyAddresses")
	selector := service.Spec.Selector
	c.want(len(selector) == 1 && selector[batchv1.JobNameLabel] == name, "the Service to select the pods of the Job %q, not %v", name, selector)
	for _, spread := range job.Template.Spec.TopologySpreadConstraints {
		c.want(spread.LabelSelector.MatchLabels[batchv1.JobNameLabel] == name, "the pods of the Job %q spread over the nodes", name)
	}
}

// jobSet checks a JobSet, which makes the Service itself.
func (c *checker) jobSet(set *jobsetv1alpha2.JobSet) {
	network, policy := set.Spec.Network, set.Spec.FailurePolicy
	c.want(network != nil && network.EnableDNSHostnames != nil && *network.EnableDNSHostnames, "names of pods")
	c.want(network != nil && network.PublishNotReadyAddresses != nil && *network.PublishNotReadyAddresses, "publishNotReadyAddresses")
	c.want(policy != nil && policy.MaxRestarts > 0, "restarts")
	c.want(len(set.Spec.ReplicatedJobs) == 1, "1 Job, within which an index is a rank")
	for _, job := range set.Spec.ReplicatedJobs {
		c.want(job.Replicas == 1, "1 replica, within which an index is a rank")
		c.ranks(set.Name+"-"+job.Name+"-0-3", &job.Template.Spec)
	}
}

// ranks checks an Indexed Job, whose pods are ranks. Host is the name of its last pod.
func (c *checker) ranks(host string, job *batchv1.JobSpec) {
	c.failsAtOnce(job)
	c.want(*job.CompletionMode == batchv1.IndexedCompletion, "completionMode Indexed")
	c.want(len(validation.IsDNS1123Label(host)) == 0, "a name in DNS, not %q", host)
	completions, parallelism := orZero(job.Completions), orZero(job.Parallelism)
	c.want(parallelism == completions, "as much parallelism as completions: %d, not %d", completions, parallelism)
	container := c.container(job)
	size, token := variable(container, "CHORALE_SIZE"), variable(container, "CHORALE_TOKEN")
	c.want(size.Value == strconv.Itoa(int(completions)), "as many completions as CHORALE_SIZE: %q, not %d", size.Value, completions)
	if token.ValueFrom == nil || token.ValueFrom.SecretKeyRef == nil {
		c.want(false, "CHORALE_TOKEN from a Secret")
		return
	}
	ref, made := token.ValueFrom.SecretKeyRef, createSecret.FindStringSubmatch(c.text)
	c.want(made != nil && ref.Name == made[1] && ref.Key == made[2], "the Secret that a command above makes, %q, not %q with the key %q", made, ref.Name, ref.Key)
}

// createSecret is the command that makes a Secret. It has no secret in its arguments.
var createSecret = regexp.MustCompile(`\| kubectl create secret generic (\S+) --from-file=(\S+)=/dev/stdin\n`)

// alone checks a Job with one pod, in which chorale run starts the ranks.
func (c *checker) alone(job *batchv1.JobSpec) {
	c.failsAtOnce(job)
	command := c.container(job).Command
	c.want(len(command) == 5 && slices.Equal(command[:3], []string{"/chorale", "run", "-n"}) && command[4] == "/program",
		"chorale run, and the program of the image, not %q", command)
}

// failsAtOnce checks that no rank is started anew while others wait for it.
func (c *checker) failsAtOnce(job *batchv1.JobSpec) {
	c.want(job.BackoffLimit != nil && *job.BackoffLimit == 0, "backoffLimit 0")
	c.want(job.Template.Spec.RestartPolicy == corev1.RestartPolicyNever, "restartPolicy Never")
}

// container returns the one container of a Job's pods.
func (c *checker) container(job *batchv1.JobSpec) corev1.Container {
	containers := job.Template.Spec.Containers
	if len(containers) != 1 {
		c.want(false, "1 container, not %d", len(containers))
		return corev1.Container{}
	}
	c.want(containers[0].Image == c.image, "the image that the Dockerfile makes, %s, not %s", c.image, containers[0].Image)
	return containers[0]
}

func variable(container corev1.Container, name string) corev1.EnvVar {
	for _, v := range container.Env {
		if v.Name == name {
			return v
		}
	}
	return corev1.EnvVar{}
}

func orZero(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// find returns the object of a type; nil if there is none.
func find[T any](objects []any) (found T) {
	for _, object := range objects {
		if o, ok := object.(T); ok {
			return o
		}
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
