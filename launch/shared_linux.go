package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/transport/shm"
)

// A memoryOffer passes the file of a job's memory to the other ranks of a host. Its
// address is an abstract one: it lies in no directory, ends with this process, and is
// seen in its network namespace alone. All containers of that namespace see it.
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
// the same user and know the job's secret, and the file's header names the job. No rank
// takes the other's word for any of that.
func findMemory(env JobEnv) (memory *os.File, offer *memoryOffer, err error) {
	address := memoryAddress(env.Secret.Job(), env.host())
	for range passAttempts {
		memory, err = takeMemory(address, memoryProver(env, uint32(env.Rank)))
		if err == nil || !errors.Is(err, unix.ECONNREFUSED) {
			return memory, nil, err
		}
		offer, err = offerMemory(address, env)
		if err == nil {
			return offer.memory, offer, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, nil, err
		}
	}
	return nil, nil, err
}

// memoryProver returns the prover of a rank, or of the Launcher in the place of the rank
// that offers the memory. A number of a user says less than the secret does: root of one
// container is root of another. The secret is that of the job in this network namespace,
// so that nobody can relay the proof of a rank in another one, at the same address there.
func memoryProver(env JobEnv, self uint32) *proof.Prover {
	return proof.NewProver(proof.SecretOf(env.Secret.Reveal(), "memory of "+networkNamespace()), self, env.Size)
}

// memoryAddress returns the address at which the memory of a job is offered. It is no
// secret: whoever listens there still has to belong to this user and to know the job's.
// Host is what the launcher counts the host as, which may be one of several on a machine.
func memoryAddress(job [16]byte, host int) *net.UnixAddr {
	h := sha256.New()
	fmt.Fprintf(h, "%x %d %s %d", job, os.Geteuid(), os.Getenv(envHost), host)
	return &net.UnixAddr{Net: "unix", Name: "@chorale-" + hex.EncodeToString(h.Sum(nil)[:16])}
}

// offerMemory makes the memory and passes its file to the ranks that ask for it.
func offerMemory(address *net.UnixAddr, env JobEnv) (*memoryOffer, error) {
	listener, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, err
	}
	memory, err := shm.NewMemory(env.Size, env.Secret.Job())
	if err != nil {
		listener.Close()
		return nil, err
	}
	o := &memoryOffer{listener, memory, make(chan struct{})}
	server := proof.Server{Prover: memoryProver(env, proof.Launcher), Listener: userListener{listener}, Handle: o.pass}
	go func() {
		defer close(o.done)
		server.Serve(context.Background())
	}()
	return o, nil
}

// A userListener accepts the connections of this user's processes.
type userListener struct{ *net.UnixListener }

func (l userListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkUser(conn) == nil {
			return conn, nil
		}
		conn.Close()
	}
}

// pass passes the file to one rank. A rank that does not take it fails alone.
func (o *memoryOffer) pass(_ int, conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(passTimeout))
	_, _, _ = conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(int(o.memory.Fd())), nil)
}

// close ends the offer. The file stays open.
func (o *memoryOffer) close() {
	o.listener.Close()
	<-o.done
}

// takeMemory returns the file that another rank offers. The error is ECONNREFUSED if no
// rank does.
func takeMemory(address *net.UnixAddr, prover *proof.Prover) (*os.File, error) {
	conn, err := net.DialUnix("unix", nil, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := checkUser(conn); err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(passTimeout))
	switch _, err := prover.Connect(context.Background(), conn, proof.Launcher); {
	case errors.Is(err, proof.ErrDropped) && !errors.Is(err, os.ErrDeadlineExceeded): // the other rank ends
		return nil, unix.ECONNREFUSED
	case err != nil:
		return nil, err
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET): // the other rank ends
		return nil, unix.ECONNREFUSED
	case err != nil:
		return nil, err
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
