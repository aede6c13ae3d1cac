//go:build !linux

package launch

import (
	"errors"
	"os"
)

// Ranks share memory on Linux only.

func inherited(int, int64) (*os.File, error) { return nil, errors.ErrUnsupported }

type memoryOffer struct{}

func (*memoryOffer) close() {}

func findMemory(JobEnv) (*os.File, *memoryOffer, error) {
	return nil, nil, errors.ErrUnsupported
}

func memoryName(*os.File) (string, error) { return "", errors.ErrUnsupported }

// hostName returns a name that the ranks of a host have in common.
func hostName() string {
	if host, ok := os.LookupEnv(envHost); ok {
		return host
	}
	return networkNamespace()
}

// networkNamespace names the host, which is not told from its namespaces here.
func networkNamespace() string {
	host, _ := os.Hostname() // "" is the name of all that have none
	return host
}
