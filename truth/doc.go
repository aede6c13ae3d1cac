// The command truth tests the prediction against reality: it has chorale measure this machine
// into a profile, measures every algorithm of every collective, and compares each time with
// the one that the simulation says by the profile. With --write it writes docs/truth.md and
// docs/truth.svg.
//
//	go run ./truth --write      about 15 minutes
//	go run ./truth --short      a few seconds, for tests
package main
