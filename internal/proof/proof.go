package proof

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	version = 2
	magic   = "chorale\n"

	greetingLen  = len(magic) + 8
	nonceLen     = 32
	macLen       = sha256.Size
	challengeLen = greetingLen + 16 + 2*4 + nonceLen
	answerLen    = greetingLen + nonceLen + macLen

	// ProofLen is the number of bytes of a proof.
	ProofLen = macLen
)

// Launcher is the number of the launcher beside the ranks.
const Launcher = 1<<32 - 1

// A status says in an answer whether the listener is the one that was wanted.
type status uint16

const (
	proven       status = iota // it is: its proof follows
	otherVersion               // it speaks the version of its greeting
	otherJob                   // it belongs to another job
	otherRank                  // it is another rank of the job
	noPeer                     // the job has no such rank as the one that dials
	otherMode                  // its connections go on in another way
)

// A mode says how a connection goes on behind the proof.
type mode uint8

const (
	plain     mode = iota
	encrypted      // by TLS
)

func (m mode) String() string { return [...]string{"without TLS", "with TLS"}[m] }

// ErrDropped says that a connection ended before the handshake was complete. The listener
// may have dropped it among others: another attempt may succeed.
var ErrDropped = errors.New("the connection ended during the handshake")

// A Prover is one end of a job's connections. Its methods may be called concurrently.
type Prover struct {
	// TLS has connections go on as TLS 1.3 behind the proof. It is the same at both ends,
	// or they refuse each other. It is set before the first connection.
	TLS bool

	key    []byte
	tlsKey []byte
	job    [16]byte
	self   uint32
	size   uint32
}

// NewProver returns the prover of a rank, or of the Launcher, in a job of size ranks.
func NewProver(s Secret, self uint32, size int) *Prover {
	return &Prover{
		key: s.derive("chorale proof 1", macLen), tlsKey: s.derive("chorale tls 1", macLen),
		job: s.Job(), self: self, size: uint32(size),
	}
}

func (p *Prover) mode() mode {
	if p.TLS {
		return encrypted
	}
	return plain
}

// Connect asks the listener at the other end of a connection for its proof that it is the
// rank to, or the Launcher, checks it, and sends this side's proof. It returns the
// connection to go on with, which is another one with TLS. A deadline of the connection
// bounds it, and so does ctx while TLS begins.
//
// The error is [ErrDropped] if the connection ends, and otherwise says what the
// listener is.
func (p *Prover) Connect(ctx context.Context, conn net.Conn, to uint32) (net.Conn, error) {
	mine, nonces, err := p.dial(conn, to)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(mine[:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	if !p.TLS {
		return conn, nil
	}
	return p.startTLS(ctx, conn, nonces)
}

// dial is the part of Connect up to the proof of the listener. It returns this side's
// proof.
func (p *Prover) dial(conn net.Conn, to uint32) (proof [ProofLen]byte, n nonces, err error) {
	challenge := p.challenge(to)
	if _, err := conn.Write(challenge); err != nil {
		return proof, n, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	var answer [answerLen]byte
	if _, err := io.ReadFull(conn, answer[:greetingLen]); err != nil {
		return proof, n, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	if err := p.checkGreeting(answer[:greetingLen], to); err != nil {
		return proof, n, fmt.Errorf("what listens at %s %w", conn.RemoteAddr(), err)
	}
	if _, err := io.ReadFull(conn, answer[greetingLen:]); err != nil {
		return proof, n, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	n = nonces{challenge, answer[greetingLen : greetingLen+nonceLen]}
	if want := p.mac("server", n); !hmac.Equal(answer[greetingLen+nonceLen:], want[:]) {
		return proof, n, fmt.Errorf("what listens at %s does not know the secret of this job", conn.RemoteAddr())
	}
	return p.mac("client", n), n, nil
}

// nonces are what the proofs of a connection are about.
type nonces struct {
	challenge []byte // with the nonce of the side that dials, and the ranks of both
	listener  []byte // the nonce of the listener
}

// checkGreeting checks the first bytes of an answer, and says what is wrong with the
// listener.
func (p *Prover) checkGreeting(b []byte, to uint32) error {
	v, s, m, ok := parseGreeting(b)
	switch {
	case !ok:
		return errors.New("is no rank and no launcher of chorale")
	case v != version:
		return fmt.Errorf("speaks version %d of the handshake, this process version %d", v, version)
	case m != p.mode():
		return fmt.Errorf("expects connections %s, and this process makes them %s", m, p.mode())
	case s == otherJob:
		return errors.New("belongs to another job")
	case s == otherRank:
		return fmt.Errorf("belongs to this job, but is not %s", name(to))
	case s == noPeer:
		return fmt.Errorf("knows no %s in this job", name(p.self))
	case s != proven:
		return fmt.Errorf("answers with status %d", s)
	}
	return nil
}

func name(n uint32) string {
	if n == Launcher {
		return "launcher"
	}
	return fmt.Sprintf("rank %d", n)
}

// accept is the listener's side: it proves the secret to the peer, checks the peer's
// proof, and returns the peer's rank. A deadline of the connection bounds it.
func (p *Prover) accept(conn net.Conn) (from int, n nonces, err error) {
	var challenge [challengeLen]byte
	if _, err := io.ReadFull(conn, challenge[:greetingLen]); err != nil {
		return 0, n, err
	}
	v, _, m, ok := parseGreeting(challenge[:greetingLen])
	switch {
	case !ok:
		return 0, n, errors.New("the peer is no rank of chorale")
	case v != version:
		return 0, n, p.refuse(conn, otherVersion)
	case m != p.mode():
		return 0, n, p.refuse(conn, otherMode)
	}
	if _, err := io.ReadFull(conn, challenge[greetingLen:]); err != nil {
		return 0, n, err
	}
	peer, s := p.check(challenge[greetingLen:])
	if s != proven {
		return 0, n, p.refuse(conn, s)
	}
	answer := p.appendGreeting(make([]byte, 0, answerLen), proven)
	answer = answer[:greetingLen+nonceLen]
	n = nonces{challenge[:], answer[greetingLen:]}
	rand.Read(n.listener) // never fails
	mac := p.mac("server", n)
	if _, err := conn.Write(append(answer, mac[:]...)); err != nil {
		return 0, n, err
	}
	var theirs [macLen]byte
	if _, err := io.ReadFull(conn, theirs[:]); err != nil {
		return 0, n, err
	}
	if want := p.mac("client", n); !hmac.Equal(theirs[:], want[:]) {
		return 0, n, errors.New("the peer does not know the secret of this job")
	}
	return int(peer), n, nil
}

// refuseTimeout bounds how long a peer may take to read why it is refused.
const refuseTimeout = time.Second

// refuse tells a peer why it gets no proof. What the peer has sent is read, since
// closing over unread bytes could overtake the answer.
func (p *Prover) refuse(conn net.Conn, s status) error {
	conn.SetDeadline(time.Now().Add(refuseTimeout))
	conn.Write(p.appendGreeting(nil, s))
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
		io.CopyN(io.Discard, conn, int64(4*challengeLen))
	}
	return fmt.Errorf("refused with status %d", s)
}

// challenge returns the first message to a peer, with a new nonce.
func (p *Prover) challenge(to uint32) []byte {
	b := p.appendGreeting(make([]byte, 0, challengeLen), proven)
	b = append(b, p.job[:]...)
	b = binary.LittleEndian.AppendUint32(b, p.self)
	b = binary.LittleEndian.AppendUint32(b, to)
	b = b[:challengeLen]
	rand.Read(b[challengeLen-nonceLen:]) // never fails
	return b
}

// check returns the rank that a challenge, without its greeting, is from, and whether it is
// for this prover.
func (p *Prover) check(challenge []byte) (from uint32, s status) {
	from, to := binary.LittleEndian.Uint32(challenge[16:]), binary.LittleEndian.Uint32(challenge[20:])
	switch {
	case !bytes.Equal(challenge[:16], p.job[:]):
		return 0, otherJob
	case to != p.self:
		return 0, otherRank
	case from >= p.size || from == p.self:
		return 0, noPeer
	}
	return from, proven
}

func (p *Prover) mac(role string, n nonces) [macLen]byte { return sum(p.key, role, n) }

func sum(key []byte, role string, n nonces) (mac [macLen]byte) {
	h := hmac.New(sha256.New, key)
	io.WriteString(h, role)
	h.Write(n.challenge)
	h.Write(n.listener)
	h.Sum(mac[:0])
	return mac
}

func (p *Prover) appendGreeting(b []byte, s status) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = binary.LittleEndian.AppendUint16(b, uint16(s))
	return append(b, byte(p.mode()), 0, 0, 0)
}

// parseGreeting parses a greeting. A mode that there is none of is no greeting in this
// version.
func parseGreeting(b []byte) (v int, s status, m mode, ok bool) {
	rest := b[len(magic):]
	v, s, m = int(binary.LittleEndian.Uint16(rest)), status(binary.LittleEndian.Uint16(rest[2:])), mode(rest[4])
	return v, s, m, string(b[:len(magic)]) == magic && (v != version || m <= encrypted)
}
