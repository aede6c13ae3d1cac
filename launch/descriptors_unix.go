//go:build unix

package launch

import (
	"fmt"
	"os"
	"syscall"

	"github.com/chorale-go/chorale/internal/proof"
)

const (
	// rankDescriptors are the file descriptors that the launcher may hold for a rank:
	// its control connection, another one that has proven nothing yet, two pipes of
	// output, and on Linux its process.
	rankDescriptors = 5

	// spareDescriptors are those that come and go: the pipes of a process that starts,
	// and a connection that has just been accepted.
	spareDescriptors = 16
)

// checkDescriptors returns an error unless this process may open as many files as a job
// takes, and how many more strangers may take.
func checkDescriptors(ranks int) (strangers int, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return proof.UnprovenMax, nil // starting the ranks will tell
	}
	need := uint64(openDescriptors() + rankDescriptors*ranks + spareDescriptors)
	if need < uint64(limit.Cur) {
		return int(min(uint64(limit.Cur)-need, proof.UnprovenMax)), nil
	}
	return 0, fmt.Errorf("%d ranks take %d file descriptors of the launcher, and its limit is %d: raise it with ulimit -n %d",
		ranks, need, limit.Cur, need+1)
}

// openDescriptors returns the number of files that this process has open.
func openDescriptors() int {
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
