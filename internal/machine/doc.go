// Package machine finds the machine's profile, for jobs, which choose algorithms by its
// selections. A job reads the profile once, when it starts. The environment variable
// CHORALE_MACHINE names the file, or says that there is none.
package machine
