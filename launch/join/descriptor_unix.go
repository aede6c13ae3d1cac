//go:build unix

package join

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// isConnected reports whether a file descriptor is an open, connected socket.
func isConnected(fd int) bool {
	_, err := syscall.Getpeername(fd) // fails for what is no socket, and for one that listens
	return err == nil
}

// takeDescriptor takes over a connection that the process inherited. Processes that
// this one starts must not hold it open, because the launcher would then not see this
// one end.
func takeDescriptor(fd int) (net.Conn, error) {
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "PMI_FD")
	if file == nil {
		return nil, fmt.Errorf("file descriptor %d is not open", fd)
	}
	defer file.Close()
	return net.FileConn(file)
}
