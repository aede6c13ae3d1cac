// Package deadlock finds ranks that wait for each other, from what each of them says
// that it waits for.
//
// A rank looks with a [Watch] at its own endpoint, three times within the patience of
// the job. A [Finder] takes what all ranks report, and returns a [Cycle] of them: each
// waits for the next one, and the last one for the first. The package has no connection:
// its callers bring the reports to the finder.
package deadlock
