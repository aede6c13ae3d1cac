package join

import (
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbersOf(t, "cluster.md", "Slurm", map[string]int64{"slurmTries": slurmTries, "slurmSpan": slurmSpan, "slurmPort": slurmPort})
	pagetest.CheckNumbersOf(t, "cluster.md", "torchrun", map[string]int64{"torchPorts": torchPorts})
	pagetest.CheckNumbersOf(t, "cluster.md", "Kubernetes", map[string]int64{
		"kubernetesPort": kubernetesPort, "kubernetesLookups": int64(kubernetesLookups),
	}, "30 s", "64 MiB") // of others' caches and containers
	pagetest.CheckNumbersOf(t, "bounds.md", "From a foreign launcher", map[string]int64{
		"maxPMILine": maxPMILine, "maxPMIRequest": maxPMIRequest, "maxPMIValue": maxPMIValue, "minValue": minValue, "maxKVSName": maxKVSName,
		"maxPMIxMessage": maxPMIxMessage, "maxPMIxValue": maxPMIxValue, "maxNamespace": maxNamespace,
		"maxShared": maxShared, "maxParts": maxParts, "maxReason": maxReason, "maxRanks": maxRanks, "maxHosts": maxHosts, "maxName": maxName,
	})
}
