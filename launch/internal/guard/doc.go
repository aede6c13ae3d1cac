// Package guard removes what a job leaves behind on a host, even if its launcher is
// killed.
//
// A launcher starts a guard process with [Start], and tells it of every process group and
// directory before it relies on them. The guard process runs [Run]. When the connection to
// the launcher ends, it kills the groups that have not ended, kills the processes that
// carry the mark of the job in their environment, and removes the directories. If the
// guard process is killed instead, the launcher does that itself.
package guard
