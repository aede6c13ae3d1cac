//go:build mpi && mpich

package mpi

// launcher is the command that starts ranks, but for their number.
var launcher = []string{"mpiexec.hydra"}
