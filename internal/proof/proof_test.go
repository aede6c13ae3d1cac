package proof

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

var (
	testSecret = Secret{1, 2, 3}
	zero       = NewProver(testSecret, 0, 4)
	one        = NewProver(testSecret, 1, 4)
)

// pair returns the ends of a connection, the one that dials first.
func pair(t testing.TB) (dialing, accepting net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dialing, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if accepting, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, conn := range []net.Conn{dialing, accepting} {
		conn.SetDeadline(time.Now().Add(Timeout))
		t.Cleanup(func() { conn.Close() })
	}
	return dialing, accepting
}

// prove has one prover dial another, and returns what each finds.
func prove(t testing.TB, dialing, accepting *Prover, to uint32) (from int, dialed, accepted error) {
	t.Helper()
	a, b := pair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var n nonces
		if from, n, accepted = accepting.accept(b); accepted == nil && accepting.TLS {
			accepted = tls.Server(b, accepting.config(n)).Handshake()
		}
		b.Close()
	}()
	if _, dialed = dialing.Connect(t.Context(), a, to); dialed != nil {
		a.Close()
	}
	<-done
	return from, dialed, accepted
}

// withTLS returns the prover of a rank of 4 whose connections go on as TLS.
func withTLS(s Secret, rank uint32) *Prover {
	p := NewProver(s, rank, 4)
	p.TLS = true
	return p
}

func TestTwoProcessesThatKnowTheSecretProveItToEachOther(t *testing.T) {
	for _, to := range []struct {
		prover *Prover
		number uint32
	}{{zero, 0}, {NewProver(testSecret, Launcher, 4), Launcher}, {withTLS(testSecret, 0), 0}, {withTLS(testSecret, Launcher), Launcher}} {
		dialing := *one
		dialing.TLS = to.prover.TLS
		if from, dialed, accepted := prove(t, &dialing, to.prover, to.number); from != 1 || dialed != nil || accepted != nil {
			t.Errorf("rank %d, %v, %v; want rank 1", from, dialed, accepted)
		}
	}
}

func TestTheDialingSideLearnsWhatItHasReached(t *testing.T) {
	other := NewProver(Secret{9}, 0, 4)
	impostor := *NewProver(Secret{9}, 0, 4) // it has overheard the job
	impostor.job = zero.job
	for _, test := range []struct {
		name      string
		accepting *Prover
		dialing   *Prover
		want      string
	}{
		{"another job", other, one, "belongs to another job"},
		{"another rank", NewProver(testSecret, 2, 4), one, "belongs to this job, but is not rank 0"},
		{"the launcher", NewProver(testSecret, Launcher, 4), one, "belongs to this job, but is not rank 0"},
		{"a smaller job", NewProver(testSecret, 0, 3), NewProver(testSecret, 3, 4), "knows no rank 3 in this job"},
		{"itself", zero, zero, "knows no rank 0 in this job"},
		{"an impostor", &impostor, one, "does not know the secret of this job"},
		{"one with TLS", withTLS(testSecret, 0), one, "expects connections with TLS, and this process makes them without TLS"},
		{"one without TLS", zero, withTLS(testSecret, 1), "expects connections without TLS, and this process makes them with TLS"},
	} {
		_, dialed, accepted := prove(t, test.dialing, test.accepting, 0)
		if dialed == nil || !strings.Contains(dialed.Error(), test.want) || errors.Is(dialed, ErrDropped) {
			t.Errorf("%s: the dialing side finds %v, want %q", test.name, dialed, test.want)
		}
		if accepted == nil {
			t.Errorf("%s: the listener takes it", test.name)
		}
	}
}

func TestAnAnswerOfNoProverIsAnError(t *testing.T) {
	answer := one.appendGreeting(nil, proven)
	newer := bytes.Clone(answer)
	newer[len(magic)] = version + 1
	for _, test := range []struct {
		name    string
		answer  []byte
		want    string
		dropped bool
	}{
		{"mail", []byte("220 mail.example.org ESMTP\r\n"), "is no rank and no launcher", false},
		{"another version", newer, "speaks version 3 of the handshake, this process version 2", false},
		{"a mode of none", append(bytes.Clone(answer[:greetingLen-4]), 2, 0, 0, 0), "is no rank and no launcher", false},
		{"a status of none", one.appendGreeting(nil, 99), "answers with status 99", false},
		{"nothing", nil, "ended during", true},
		{"half a greeting", answer[:9], "ended during", true},
		{"half an answer", append(answer, 1, 2, 3), "ended during", true},
		{"its own challenge", nil, "does not know the secret", false},
	} {
		a, b := pair(t)
		go func() {
			defer b.Close()
			if test.name == "its own challenge" {
				io.CopyN(b, b, int64(challengeLen)) // and more, since a challenge is shorter than an answer
				b.Write(make([]byte, answerLen-challengeLen))
			}
			b.Write(test.answer)
			b.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, b)
		}()
		_, err := one.Connect(t.Context(), a, 0)
		a.Close()
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrDropped) != test.dropped {
			t.Errorf("%s: %v, want %q, dropped: %v", test.name, err, test.want, test.dropped)
		}
	}
}

// recording keeps what is written to a connection.
type recording struct {
	net.Conn
	written bytes.Buffer
}

func (r *recording) Write(p []byte) (int, error) {
	r.written.Write(p)
	return r.Conn.Write(p)
}

func TestARecordedProofIsOfNoUse(t *testing.T) {
	a, b := pair(t)
	first := &recording{Conn: a}
	accepted := make(chan error)
	go func() { _, _, err := zero.accept(b); accepted <- err }()
	if _, err := one.Connect(t.Context(), first, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}

	a, b = pair(t)
	go a.Write(first.written.Bytes())
	if from, _, err := zero.accept(b); err == nil {
		t.Errorf("the listener takes a recorded proof for that of rank %d", from)
	}
}

// A listener's proof does not serve the stranger that asked for it.
func TestAReflectedProofIsOfNoUse(t *testing.T) {
	a, b := pair(t)
	go func() {
		a.Write(one.challenge(0))
		var answer [answerLen]byte
		io.ReadFull(a, answer[:])
		a.Write(answer[answerLen-macLen:])
	}()
	if from, _, err := zero.accept(b); err == nil {
		t.Errorf("the listener takes its own proof for that of rank %d", from)
	}
}

// A stranger between two ranks cannot use the proof of one at another rank than the one
// that was wanted.
func TestAProofForOneRankIsOfNoUseAtAnother(t *testing.T) {
	challenge := one.challenge(0)
	for i := range challenge { // whatever the stranger changes
		changed := bytes.Clone(challenge)
		changed[i] ^= 2
		a, b := pair(t)
		go func() {
			a.Write(changed)
			var answer [answerLen]byte
			io.ReadFull(a, answer[:])
			proof := one.mac("client", nonces{challenge, answer[greetingLen : greetingLen+nonceLen]})
			a.Write(proof[:])
			a.Close()
		}()
		if from, _, err := zero.accept(b); err == nil {
			t.Errorf("byte %d changed: the listener takes the proof for that of rank %d", i, from)
		}
		b.Close()
	}
}

func TestTheSecretIsNotPrinted(t *testing.T) {
	job := struct {
		Name   string
		Secret Secret
	}{"a job", testSecret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s", "%q", "%d"} {
		if text := fmt.Sprintf(verb, job); !strings.Contains(text, "(secret)") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"JSON": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		var log strings.Builder
		slog.New(handler(&log)).Info("joined", "job", job, "secret", testSecret)
		if strings.Count(log.String(), "(secret)") != 2 {
			t.Errorf("a log of %s has %s", name, &log)
		}
	}
	if s, err := ParseSecret(testSecret.Reveal()); s != testSecret || err != nil {
		t.Errorf("the secret does not survive its text: %v", err)
	}
	if _, err := ParseSecret("c0ffee"); err == nil || strings.Contains(err.Error(), "c0") {
		t.Errorf("a wrong text: %v", err)
	}
}

func TestAJobsNameIsNotItsSecret(t *testing.T) {
	job := testSecret.Job()
	if bytes.Contains(testSecret[:], job[:4]) || job == (Secret{9}).Job() {
		t.Errorf("the job is %x", job)
	}
}

// FuzzAccept plays a dialing side that knows no secret. It is never believed, gets at
// most one answer, and no answer before a whole challenge for this rank.
func FuzzAccept(f *testing.F) {
	challenge := one.challenge(0)
	f.Add(challenge)
	f.Add(append(challenge, make([]byte, macLen)...))
	f.Add(challenge[:greetingLen])
	f.Add([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	other := bytes.Clone(challenge)
	other[len(magic)]++
	f.Add(other)
	f.Add(withTLS(testSecret, 1).challenge(0))
	f.Fuzz(func(t *testing.T, says []byte) {
		conn := &scripted{in: bytes.NewReader(says)}
		from, _, err := zero.accept(conn)
		if err == nil {
			t.Fatalf("the listener takes %x for rank %d", says, from)
		}
		out := conn.out.Bytes()
		switch {
		case len(out) == 0:
		case len(says) < greetingLen || string(says[:len(magic)]) != magic:
			t.Errorf("%q gets an answer", says)
		case len(out) == greetingLen:
			if _, s, _, ok := parseGreeting(out); !ok || s == proven {
				t.Errorf("a greeting alone with status %d", s)
			}
		case len(out) != answerLen || len(says) < challengeLen || !bytes.Equal(says[greetingLen:greetingLen+16], zero.job[:]):
			t.Errorf("%x gets an answer of %d bytes", says, len(out))
		}
	})
}

// FuzzDial plays a listener that knows no secret.
func FuzzDial(f *testing.F) {
	f.Add(append(one.appendGreeting(nil, proven), make([]byte, nonceLen+macLen)...))
	for s := otherVersion; s <= otherMode+1; s++ {
		f.Add(one.appendGreeting(nil, s))
	}
	f.Add(withTLS(testSecret, 0).appendGreeting(nil, proven))
	f.Add([]byte("220 mail.example.org ESMTP\r\n"))
	f.Fuzz(func(t *testing.T, says []byte) {
		conn := &scripted{in: bytes.NewReader(says)}
		if _, err := one.Connect(t.Context(), conn, 0); err == nil || conn.out.Len() != challengeLen {
			t.Fatalf("the dialing side takes %x, and has sent %d bytes", says, conn.out.Len())
		}
	})
}

// scripted is a connection on which the peer's part is fixed.
type scripted struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (s *scripted) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *scripted) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *scripted) SetDeadline(time.Time) error { return nil }
func (s *scripted) RemoteAddr() net.Addr        { return &net.TCPAddr{} }

func BenchmarkProof(b *testing.B) {
	for name, ends := range map[string][2]*Prover{"plain": {one, zero}, "TLS": {withTLS(testSecret, 1), withTLS(testSecret, 0)}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, dialed, accepted := prove(b, ends[0], ends[1], 0); dialed != nil || accepted != nil {
					b.Fatal(dialed, accepted)
				}
			}
		})
	}
}
