package launch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited returns the open file with that descriptor and length, and a name that
// no other file on any host has. This process's children do not inherit it.
func inherited(fd int, bytes int64) (*os.File, string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, "", fmt.Errorf("file %d: %w", fd, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size != bytes {
		return nil, "", fmt.Errorf("file %d is not the one that the launcher made", fd)
	}
	unix.CloseOnExec(fd)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, "", err
	}
	name := fmt.Sprintf("%s/%d/%d", strings.TrimSpace(string(boot)), stat.Dev, stat.Ino)
	return os.NewFile(uintptr(fd), "memory"), name, nil
}
