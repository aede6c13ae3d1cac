// Package output joins what the processes of a job print into the two outputs of their
// launcher.
//
// A [Stream] is one output of one process. It puts a label in front of each line and
// writes whole lines to a [Sink]. Many streams write to one sink; their lines take turns,
// and a line that keeps the others waiting for too long is cut visibly.
package output
