package join

import (
	"strconv"
	"strings"
	"time"
)

const (
	// kubernetesPort is where rank 0 listens in its pod, which has its addresses to
	// itself. It is below the ports that kernels and Kubernetes give away.
	kubernetesPort = 24672

	// kubernetesLookups is how long the name of rank 0's pod may not resolve. A name
	// that was asked for before its pod exists stays unknown for 30 s in CoreDNS.
	kubernetesLookups = 5 * time.Minute
)

// kubernetes finds the place of a pod of an Indexed Job. Kubernetes says the index
// alone; the user sets CHORALE_SIZE to the number of completions.
func kubernetes(env *environment) *Place {
	const index = "JOB_COMPLETION_INDEX"
	if !env.has(index) {
		return nil
	}
	if !env.has(envSize) {
		env.miss("%s is set without %s, the number of the Job's completions", index, envSize)
		return nil
	}
	p := &Place{Launcher: Kubernetes, Reason: env.reason(index, envSize, envRendezvous)}
	p.Rank, p.Size = env.rankAndSize(index, envSize)
	if p.Size == 1 || env.err != nil {
		return p
	}
	if p.Rendezvous = rendezvous(env); p.Rendezvous == nil && env.err == nil {
		p.Rendezvous = &Rendezvous{Hosts: []string{firstPod(env, p.Rank)}, Ports: []int{kubernetesPort}}
	}
	if env.err == nil {
		p.Job = p.Rendezvous.Hosts[0]
		p.Rendezvous.LookupLimit = kubernetesLookups
	}
	return p
}

// firstPod returns the name of rank 0's pod in DNS: that of this pod with index 0. A
// pod's host name is JOB-INDEX, whatever the name of the pod is.
func firstPod(env *environment, index int) string {
	name, err := podName(env.host)
	if err != nil {
		env.fail("the name of this pod: %w: set %s", err, envRendezvous)
		return ""
	}
	first, domain, found := strings.Cut(name, ".")
	job, isIndexed := strings.CutSuffix(first, "-"+strconv.Itoa(index))
	switch {
	case !isIndexed || job == "":
		env.fail("the host name %.255q of the pod with JOB_COMPLETION_INDEX=%d does not end in -%d, as it does with hostNetwork: set %s",
			first, index, index, envRendezvous)
	case !found || domain == "":
		env.fail("the pod %.255q has no name in DNS: set subdomain in the Job's pod template to the name of a headless Service, or set %s",
			first, envRendezvous)
	}
	// The final dot spares the search domains.
	return job + "-0." + strings.TrimSuffix(domain, ".") + "."
}

// podName returns the name of this pod with its domain, if it has one. The kubelet
// writes both of them into /etc/hosts: ADDRESS HOST.SUBDOMAIN.NAMESPACE.svc.DOMAIN HOST.
func podName(h host) (string, error) {
	name, err := h.name()
	if err != nil || strings.Contains(name, ".") {
		return name, err
	}
	hosts, err := h.names()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		for _, full := range strings.Fields(line) {
			if strings.HasPrefix(full, name+".") {
				return full, nil
			}
		}
	}
	return name, nil
}
