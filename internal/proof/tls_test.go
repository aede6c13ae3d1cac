package proof

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A stranger between two ranks may pass their proofs on, and then speak in their place.
func TestAStrangerWhoRelaysAProofHasNoPartInTheChannel(t *testing.T) {
	dialing, toRank := pair(t)
	toListener, accepting := pair(t)
	var relaying sync.WaitGroup
	defer relaying.Wait()
	relaying.Go(func() {
		io.CopyN(toListener, toRank, int64(challengeLen))
		io.CopyN(toRank, toListener, int64(answerLen))
		io.CopyN(toListener, toRank, macLen)
		// From here on the stranger speaks for himself, with a key of another connection.
		other := withTLS(testSecret, 0).config(nonces{[]byte("another"), []byte("connection")})
		other.VerifyConnection = nil
		tls.Server(toRank, other).Handshake()
		toRank.Close()
		tls.Client(toListener, other).Handshake()
		toListener.Close()
	})
	accepted := make(chan error, 1)
	go func() {
		p := withTLS(testSecret, 0)
		_, n, err := p.accept(accepting)
		if err == nil {
			err = tls.Server(accepting, p.config(n)).Handshake()
		}
		accepting.Close()
		accepted <- err
	}()
	if _, err := withTLS(testSecret, 1).Connect(t.Context(), dialing, 0); !errors.Is(err, errOtherKey) || errors.Is(err, ErrDropped) {
		t.Errorf("the dialing side: %v, want %v", err, errOtherKey)
	}
	dialing.Close()
	if err := <-accepted; !errors.Is(err, errOtherKey) {
		t.Errorf("the listener: %v, want %v", err, errOtherKey)
	}
}

// Somebody between two ranks tells each of them what it wants to hear of the other's mode,
// so that one of them, or both, go on in clear.
func TestNobodyBetweenTwoRanksTurnsTLSOff(t *testing.T) {
	const modeAt = greetingLen - 4
	modes := map[mode]func(Secret, uint32) *Prover{
		plain:     func(s Secret, rank uint32) *Prover { return NewProver(s, rank, 4) },
		encrypted: withTLS,
	}
	for _, ends := range []struct{ dialing, accepting, toListener, toRank mode }{
		{encrypted, encrypted, plain, plain},
		{encrypted, encrypted, plain, encrypted},
		{encrypted, plain, plain, encrypted},
		{plain, encrypted, encrypted, plain},
	} {
		dialing, toRank := pair(t)
		toListener, accepting := pair(t)
		var others sync.WaitGroup
		others.Go(func() {
			var challenge [challengeLen]byte
			io.ReadFull(toRank, challenge[:])
			challenge[modeAt] = byte(ends.toListener)
			toListener.Write(challenge[:])
			var answer [answerLen]byte
			n, _ := io.ReadFull(toListener, answer[:]) // or a refusal
			answer[modeAt], answer[modeAt-2] = byte(ends.toRank), byte(proven)
			toRank.Write(answer[:max(n, greetingLen)])
			if n == answerLen {
				io.CopyN(toListener, toRank, macLen)
			}
			toRank.Close()
			toListener.Close()
		})
		others.Go(func() {
			if from, _, err := modes[ends.accepting](testSecret, 0).accept(accepting); err == nil {
				t.Errorf("%+v: the listener takes the connection for that of rank %d", ends, from)
			}
			accepting.Close()
		})
		if _, err := modes[ends.dialing](testSecret, 1).Connect(t.Context(), dialing, 0); err == nil {
			t.Errorf("%+v: the dialing side goes on", ends)
		}
		dialing.Close()
		others.Wait()
	}
}

func TestTheKeyOfAChannelIsThatOfOneConnectionOfOneJob(t *testing.T) {
	key := func(p *Prover, challenge, nonce string) string {
		return string(p.config(nonces{[]byte(challenge), []byte(nonce)}).Certificates[0].Certificate[0])
	}
	p := withTLS(testSecret, 0)
	mine := key(p, "challenge", "nonce")
	if mine != key(withTLS(testSecret, 1), "challenge", "nonce") {
		t.Error("both ends of a connection have not the same key")
	}
	for what, other := range map[string]string{
		"another job":            key(withTLS(Secret{9}, 0), "challenge", "nonce"),
		"another dialing side":   key(p, "Challenge", "nonce"),
		"another listening side": key(p, "challenge", "Nonce"),
	} {
		if mine == other {
			t.Errorf("%s has the same key", what)
		}
	}
}

// What a stranger reads on the wire has neither the secret nor what the ranks say.
func TestAChannelIsTLS13AndHidesWhatIsSaid(t *testing.T) {
	a, b := pair(t)
	wire := &recording{Conn: a}
	const said = "what the ranks say to each other"
	accepted := make(chan error, 1)
	go func() {
		p := withTLS(testSecret, 0)
		_, n, err := p.accept(b)
		heard := make([]byte, len(said))
		if err == nil {
			_, err = io.ReadFull(tls.Server(b, p.config(n)), heard)
		}
		if err == nil && string(heard) != said {
			err = errors.New("the listener hears " + string(heard))
		}
		accepted <- err
	}()
	c, err := withTLS(testSecret, 1).Connect(t.Context(), wire, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.(*tls.Conn).ConnectionState(); s.Version != tls.VersionTLS13 || s.DidResume {
		t.Errorf("the connection has version %x, resumed: %v", s.Version, s.DidResume)
	}
	if _, err := io.WriteString(c, said); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{"what is said": []byte(said), "the secret": testSecret[:], "the key of the proof": one.key, "the key of TLS": one.tlsKey} {
		if bytes.Contains(wire.written.Bytes(), text) {
			t.Errorf("the wire shows %s", what)
		}
	}
}

// A rank that stops in the middle of the TLS handshake holds nobody up, and a server that
// ends does not wait for it.
func TestAServerThatEndsDoesNotWaitForTheBeginningOfTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Prover: withTLS(testSecret, 0), Listener: l, Handle: func(from int, conn net.Conn) {
		conn.Close()
		t.Errorf("rank %d is handed on before TLS", from)
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(ctx) })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	mine, _, err := withTLS(testSecret, 1).dial(conn, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn.Write(mine[:])
	for s.unproven.len() > 0 {
		time.Sleep(time.Millisecond)
	}
	begin := time.Now()
	l.Close()
	cancel()
	serving.Wait()
	if took := time.Since(begin); took > Timeout/2 {
		t.Errorf("the server ends after %v", took)
	}
}

// FuzzTLS plays a rank that knows the secret and says anything where TLS begins.
func FuzzTLS(f *testing.F) {
	hello, config := &scripted{in: bytes.NewReader(nil)}, withTLS(testSecret, 1).config(nonces{})
	tls.Client(hello, config).Handshake()
	f.Add(hello.out.Bytes())
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x16, 3, 1, 0xff, 0xff, 1, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, says []byte) {
		if tls.Server(&scripted{in: bytes.NewReader(says)}, config).Handshake() == nil {
			t.Errorf("a listener takes %x for TLS of this connection", says)
		}
		if tls.Client(&scripted{in: bytes.NewReader(says)}, config).Handshake() == nil {
			t.Errorf("the dialing side takes %x for TLS of this connection", says)
		}
	})
}
