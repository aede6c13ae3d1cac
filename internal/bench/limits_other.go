//go:build !linux

package bench

import (
	"errors"
	"io"
	"net"
)

// pin fails: only Linux pins threads.
func pin(int) error { return errors.ErrUnsupported }

// pingpong exchanges 8 bytes with the other end a number of times.
func pingpong(end *net.TCPConn, times int) error {
	var buf [8]byte
	for range times {
		if _, err := end.Write(buf[:]); err != nil {
			return err
		}
		if _, err := io.ReadFull(end, buf[:]); err != nil {
			return err
		}
	}
	return nil
}

// hugePages fails: only Linux is asked for huge pages.
func hugePages(int) (buf []byte, free func(), err error) { return nil, nil, errors.ErrUnsupported }
