//go:build mpi && ompi

package mpi

// #cgo pkg-config: ompi-c
import "C"
