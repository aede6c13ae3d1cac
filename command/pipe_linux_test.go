package command

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitFull waits until the pipe on its standard input is full, so that its writer
// blocks. It polls, because the kernel notifies only the writer.
func waitFull() {
	size, err := unix.FcntlInt(0, unix.F_GETPIPE_SZ, 0)
	for deadline := time.Now().Add(20 * time.Second); err == nil; time.Sleep(time.Millisecond) {
		var n int
		if n, err = unix.IoctlGetInt(0, unix.TIOCINQ); n >= size {
			return
		}
		if time.Now().After(deadline) {
			err = fmt.Errorf("%d bytes of %d after 20 s", n, size)
		}
	}
	fmt.Fprintln(os.Stderr, "waitfull:", err)
	os.Exit(1)
}
