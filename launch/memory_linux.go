package launch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited returns the open file with that descriptor, which has at least so many bytes.
// This process's children do not inherit it.
func inherited(fd int, bytes int64) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, fmt.Errorf("file %d: %w", fd, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size < bytes {
		return nil, fmt.Errorf("file %d is not the one that the launcher made", fd)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "memory"), nil
}

// memoryName returns a name for a file that no other file on any host has. [envHost]
// is a part of it.
func memoryName(f *os.File) (string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return "", err
	}
	kernel, err := bootID()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s/%d/%d", kernel, stat.Dev, stat.Ino)
	if host, ok := os.LookupEnv(envHost); ok {
		name = host + " " + name
	}
	return name, nil
}

// bootID names this run of the kernel.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// hostName returns a name that ranks have in common if they can share memory: that of the
// kernel and of the network namespace, within which the ranks find the memory. [envHost]
// replaces it.
func hostName() string {
	if host, ok := os.LookupEnv(envHost); ok {
		return host
	}
	return networkNamespace()
}

// networkNamespace names the network namespace of this process, on this run of the kernel.
func networkNamespace() string {
	kernel, err := bootID()
	if err != nil {
		kernel, _ = os.Hostname() // "" is the name of all that have none
	}
	var stat unix.Stat_t
	_ = unix.Stat("/proc/self/ns/net", &stat) // without /proc, all have inode 0
	return fmt.Sprintf("%s/%d", kernel, stat.Ino)
}
