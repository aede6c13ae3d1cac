// Package mixed joins two endpoints of one rank into one: a local endpoint for the
// ranks of the same host, and a remote one for all others.
//
// All messages between two ranks use the same endpoint, so that they stay in order.
// A step with peers of both kinds is split, and its two parts are done at the same
// time: one goroutine starts both and polls them by turns. When one endpoint's part in
// the job ends, the other's ends too.
package mixed
