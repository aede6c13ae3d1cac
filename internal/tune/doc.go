// Package tune turns what was measured into the numbers of a machine's profile.
//
// [Fit] finds the lines of a curve. [Link] makes the profile of a transport from rows of
// package bench. [MeasureNode] measures what ranks do beside messages: copies, kernels, and
// the memory that they share. [Observe] tells whether the machine is quiet.
//
// The parameters are those of LogGP (Alexandrov, Ionescu, Schauser, Scheiman: LogGP:
// incorporating long messages into the LogP model, 1995), in pieces. docs/tune.md
// explains the methods.
package tune
