package transport

import "context"

// Any stands for every rank, or for every tag, where a letter is looked for.
const Any = -1

// A Stamp is what letters are told apart by, beside their sender.
type Stamp struct {
	Context uint32 // the communicator: letters of different contexts never meet
	Tag     int    // chosen by the program, 0 or more; Any where a letter is looked for
}

// An Envelope says what is known of a letter without its contents.
type Envelope struct {
	From, Tag int
	Size      int    // bytes
	Type      string // what the sender says the bytes are, as in "float64"
}

// A Mailer is an endpoint that carries letters, too: messages that a receiver
// picks by sender and tag, in whatever order it likes. Letters have nothing to
// do with steps, and need no signature.
//
// All methods may be called by any number of goroutines, and beside Exchange.
// Letters from one rank to another with one stamp are taken in the order in
// which they were posted. A rank may post letters to itself.
//
// They fail as Exchange does when a rank that is needed is lost or has left, or
// the job is aborted. A letter that its sender posted before it left can still
// be taken. When ctx ends before a letter has been found, or begun to be sent,
// its error is returned and the endpoint is as good as before.
type Mailer interface {
	// Post sends a letter. It returns when data may be written again: at once
	// where the letter is short, for it is copied then; when the receiver has
	// taken it where it is long.
	Post(ctx context.Context, to int, stamp Stamp, kind string, data []byte) error

	// Take waits for the first letter with the stamp that comes from a rank, or
	// from any if from is Any, and copies it to the beginning of into. If the
	// letter is longer than into, or kind is not the letter's Type, Take leaves
	// it where it is, and returns its envelope together with a [SizeError] or
	// [TypeError].
	Take(ctx context.Context, from int, stamp Stamp, kind string, into []byte) (Envelope, error)

	// Peek finds the letter that Take would, and leaves it. If wait is set, it
	// waits for one; otherwise found says whether there is one now.
	Peek(ctx context.Context, from int, stamp Stamp, wait bool) (e Envelope, found bool, err error)
}
