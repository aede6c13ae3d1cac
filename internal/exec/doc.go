// Package exec executes one rank's program over one endpoint.
//
// [Compile] turns a program into a [Plan]: every range of blocks becomes a range of
// bytes. [Plan.Run] binds the plan to the caller's memory and does its steps, each
// of which is local copies followed by one Exchange of the endpoint. A run
// allocates nothing.
//
// The package knows neither which algorithm made the program nor which transport
// moves the bytes.
package exec
