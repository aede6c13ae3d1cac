// Package match decides which message belongs to which receive. It is the same for
// all transports.
//
// Messages of steps are matched by a [Queue], one for each peer: receives that were
// posted before their message arrived, and unexpected messages that arrived before
// their receive. [Queue.Match] holds the rules: messages of one context from one
// peer are received in order, and both ends must be in the same call.
//
// Tagged messages are matched by a [TaggedQueue], one for each rank: a receive picks
// the first message with its context, its tag and its source, of which tag and
// source may be any. [Credits] bounds the memory that eager tagged messages take.
//
// Nothing here has a lock, waits, or moves bytes over a link. The lock of the
// endpoint that owns a queue guards it.
package match
