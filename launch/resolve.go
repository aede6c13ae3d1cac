package launch

import (
	"slices"

	"github.com/chorale-go/chorale/transport/shm"
)

// Resolve returns the transport that the ranks of a job on this host use if it is started
// with one of [Transports]: for auto, shm if the system can share memory between so many
// ranks, and otherwise tcp. It reserves memory for two ranks at most: a job of more ranks
// can lack memory where Resolve says shm.
func Resolve(transport string, size int) (string, error) {
	switch {
	case !slices.Contains(Transports, transport):
		return "", errTransport(transport)
	case transport != "auto":
		return transport, nil
	case size == 1:
		return "tcp", nil
	}
	if _, err := shm.MemoryLen(size); err != nil {
		return "tcp", nil
	}
	memory, err := shm.NewMemory(min(size, 2), [16]byte{})
	if err != nil {
		return "tcp", nil
	}
	return "shm", memory.Close()
}
