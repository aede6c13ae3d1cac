// Package predict tells how long a collective takes on the machine of a profile, before it
// runs: it simulates the call's schedule on what the profile says of the machine.
package predict
