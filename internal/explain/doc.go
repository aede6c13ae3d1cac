// Package explain says where the time of a collective goes on the machine of a profile, how
// long other algorithms would take, and from which size and number of ranks on another one
// is chosen, or is the fastest. All times are simulated, and in microseconds.
package explain
