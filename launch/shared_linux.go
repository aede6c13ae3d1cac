package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chorale-go/chorale/transport/shm"
)

// A memoryOffer passes the file of a job's memory to the other ranks of a host. Its
// address is an abstract one: it lies in no directory, ends with this process, and is
// seen in its network namespace alone.
type memoryOffer struct {
	listener *net.UnixListener
	memory   *os.File
	done     chan struct{}
}

const (
	// passTimeout bounds how long a process may take to pass the file, or to take it.
	passTimeout = 5 * time.Second

	// passAttempts bounds how often a rank looks for another one that has the memory, and
	// then offers its own. More than one is needed where ranks begin or end at that moment.
	passAttempts = 10
)

// findMemory returns the file of the memory that the ranks of this host share, which no
// common parent has passed to them. The first of them makes it and offers it to the
// others; offer is nil in these.
//
// Two ranks share memory if the file has gone from one to the other, both belong to
// the same user, and the file's header names the job. No rank takes the other's word
// for any of that.
func findMemory(size int, job [16]byte) (memory *os.File, offer *memoryOffer, err error) {
	address := memoryAddress(job)
	for range passAttempts {
		memory, err = takeMemory(address)
		if err == nil || !errors.Is(err, unix.ECONNREFUSED) {
			return memory, nil, err
		}
		offer, err = offerMemory(address, size, job)
		if err == nil {
			return offer.memory, offer, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, nil, err
		}
	}
	return nil, nil, err
}

// memoryAddress returns the address at which the memory of a job is offered. It is no
// secret, so that whoever listens there still has to belong to this user.
func memoryAddress(job [16]byte) *net.UnixAddr {
	h := sha256.New()
	fmt.Fprintf(h, "%x %d %s", job, os.Geteuid(), os.Getenv(envHost))
	return &net.UnixAddr{Net: "unix", Name: "@chorale-" + hex.EncodeToString(h.Sum(nil)[:16])}
}

// offerMemory makes the memory and passes its file to whoever asks for it and belongs to
// this user.
func offerMemory(address *net.UnixAddr, size int, job [16]byte) (*memoryOffer, error) {
	listener, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, err
	}
	memory, err := shm.NewMemory(size, job)
	if err != nil {
		listener.Close()
		return nil, err
	}
	o := &memoryOffer{listener, memory, make(chan struct{})}
	go o.serve()
	return o, nil
}

func (o *memoryOffer) serve() {
	defer close(o.done)
	for {
		conn, err := o.listener.AcceptUnix()
		if err != nil {
			return
		}
		o.pass(conn)
		conn.Close()
	}
}

// pass passes the file to one process. A process that does not take it fails alone.
func (o *memoryOffer) pass(conn *net.UnixConn) {
	if checkUser(conn) == nil {
		conn.SetDeadline(time.Now().Add(passTimeout))
		_, _, _ = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(o.memory.Fd())), nil)
	}
}

// close ends the offer. The file stays open.
func (o *memoryOffer) close() {
	o.listener.Close()
	<-o.done
}

// takeMemory returns the file that another rank offers. The error is ECONNREFUSED if no
// rank does.
func takeMemory(address *net.UnixAddr) (*os.File, error) {
	conn, err := net.DialUnix("unix", nil, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := checkUser(conn); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(passTimeout))
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	if n == 0 { // the other rank ends
		return nil, unix.ECONNREFUSED
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, err
	}
	var files []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err == nil {
			files = append(files, fds...)
		}
	}
	if len(files) != 1 {
		for _, fd := range files {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("another rank of this host passed %d files: want 1", len(files))
	}
	return os.NewFile(uintptr(files[0]), "memory"), nil
}

// checkUser fails unless the process at the other end belongs to this user.
func checkUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	if uid := uint32(os.Geteuid()); peer.Uid != uid {
		return fmt.Errorf("user %d offers or asks for the memory of this job of user %d", peer.Uid, uid)
	}
	return nil
}
