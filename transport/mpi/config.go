package mpi

import "time"

// A Config says how an endpoint behaves. MPI says which rank it is.
type Config struct {
	// Linger is how long Close waits for receivers to take messages, 0 for
	// [transport.Linger].
	Linger time.Duration
}
