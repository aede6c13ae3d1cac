package launch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited returns the open file of that number and length, which this process's
// children do not inherit any more, and a name that it has alone on all hosts.
func inherited(number int, bytes int64) (*os.File, string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(number, &stat); err != nil {
		return nil, "", fmt.Errorf("file %d: %w", number, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size != bytes {
		return nil, "", fmt.Errorf("file %d is another", number)
	}
	unix.CloseOnExec(number)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, "", err
	}
	name := fmt.Sprintf("%s/%d/%d", strings.TrimSpace(string(boot)), stat.Dev, stat.Ino)
	return os.NewFile(uintptr(number), "memory"), name, nil
}
