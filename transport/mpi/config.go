package mpi

import "time"

// A Job is what MPI knows of the ranks of a job.
type Job struct {
	// Hosts has a number for each rank: ranks of one host have the same one, and hosts are
	// numbered in the order of their lowest ranks.
	Hosts []int

	// Processors is the number of processors that the ranks of a host share, on the host
	// that has the fewest.
	Processors int
}

// A Config says how an endpoint behaves. MPI says which rank it is.
type Config struct {
	// Linger is how long Close waits for receivers to take messages, 0 for
	// [transport.Linger].
	Linger time.Duration
}
