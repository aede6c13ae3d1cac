// Package topo describes the networks that a schedule can be simulated on: their
// links, and the links that a message takes.
//
// [Parse] reads a topology from a text such as "mesh:4x4" or "mesh", and [ParsePlacement]
// reads which processor each rank sits on. The constructors, such as [NewMesh],
// make the same topologies; [NewGraph] and [ReadGraph] make any other. A topology
// is an immutable value and may be used by many goroutines at once.
//
// The vertices of a [Topology] are processors, numbered from 0, and after them
// switches, on which no rank sits. Every link is full duplex and counts as one in
// the textbook's figures. Where messages travel, its two directions are separate
// links with ids of their own, from 0 to 2·LinkCount−1.
//
// The figures are those of Grama, Gupta, Karypis and Kumar, Introduction to
// Parallel Computing, 2nd ed., table 2.1, unless a type says otherwise.
package topo
