// Package selection decides what a collective call leaves open: which algorithm it
// takes, and whether its receives are written with temporal stores.
//
// [Choose] chooses an algorithm by the collective, the number of ranks, the bytes,
// the operation, the transport, the processors and the hosts. Each transport has a
// table in a file of its own: inproc.go, shm.go and tcp.go. A table holds the rules
// for ranks that each have a processor, and further rules for oversubscribed ranks,
// which are more than the processors that they share. All tables build on the rules
// of base.go, which hold for every transport. The rules of hosts.go come last, for ranks
// that share hosts. The rules of the machine's profile, if it has any for the call, take
// the place of all these: see [Machine]. The environment variable CHORALE_ALGORITHM
// overrides them and the tables.
//
// What the tables say depends on the bytes of a call and on its kind. The choices for each kind
// are found once, and kept: see choices.go.
//
// All ranks of a call must choose the same algorithm. So Choose depends only on facts
// that are the same on all of them, and never on a measurement of one rank:
// all ranks of a job have the rules of the same profile.
package selection
