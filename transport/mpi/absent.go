//go:build !mpi

package mpi

import (
	"errors"

	"github.com/chorale-go/chorale/transport"
)

// Present reports whether this program was built with an MPI.
const Present = false

// New returns an error: this program was built without the tag mpi.
func New(Config) (transport.ProcessEndpoint, Job, error) {
	return nil, Job{}, errors.New("mpi: this program was built without MPI: want go build -tags mpi,mpich, or -tags mpi,ompi for Open MPI (docs/transports.md)")
}
