package join

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What a server of Open MPI 4.1.4 and its client said to each other, in hexadecimal. The
// client is rank 1 of the namespace 1141899265.
const (
	pmixVectors = `
hello  > ffffffffffffffff33000000000000006e61746976650000000008000000000000000000313134313839393236350000000001342e322e320076323100016861736800
       < 0000000000000001
commit > 00000001000000660000003700000000 000000010200000001030000000101000f000000000000001e000000010000000a63686f72616c652e6100000300000006767676767600
       < 00000000000000660000000800000000 0000000100000000
fence  > 00000001000000670000005400000000 000000010300000001000f0000000000000001000000010000000b3131343138393932363500fffffffe00000001000f0000000000000001000000010000000d706d69782e636f6c6c6563740000000000000101
       < 00000000000000670000000800000000 0000000100000000
get    > 00000001000000680000004000000000 000000010400000001 0000000b31313431383939323635000000000100000000 00000001000f0000000000000000000000010000000a63686f72616c652e6100
       < 00000000000000680000004b00000000 0000000100000000000000 01000f0000000000000035000000010000000b313134313839393236350000000000000000010000000a63686f72616c652e6100000300000006767676767600
final  > 00000001000000690000001300000000 000000010500000001000f0000000000000000
       < 00000000000000690000000800000000 0000000100000000
`
	testNamespace = "1141899265"
)

// A dialog is what client and server say in turn.
type dialog [][2][]byte

func parseDialog(t testing.TB, text string) (d dialog) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(text)) {
		side := strings.IndexAny(line, "<>")
		b, err := hex.DecodeString(strings.Join(strings.Fields(line[side+1:]), ""))
		if err != nil {
			t.Fatal(err)
		}
		if line[side] == '>' {
			d = append(d, [2][]byte{b})
		} else {
			d[len(d)-1][1] = b
		}
	}
	return d
}

// replay answers the client, hangs up after limit bytes, and reports what the client
// should not have said.
func (d dialog) replay(conn net.Conn, limit int) <-chan error {
	done := make(chan error, 1)
	go func() {
		defer conn.Close()
		for i, turn := range d {
			got := make([]byte, len(turn[0]))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, turn[0]) {
				done <- fmt.Errorf("message %d: %x, %v, want %x", i, got, err, turn[0])
				return
			}
			n := min(limit, len(turn[1]))
			conn.Write(turn[1][:n])
			if limit -= n; limit == 0 {
				break
			}
		}
		done <- nil
	}()
	return done
}

// The vectors were recorded on a little-endian machine; two fields are in its order.
func TestMessagesAreThoseOfTheRecordedClient(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("this machine is big-endian")
	}
	d := parseDialog(t, pmixVectors)
	client, server := net.Pipe()
	report := d.replay(server, noLimit)
	s := &pmixStore{client: newClient(client, 4096, pmixReader()), namespace: testNamespace, index: 1, tag: 0x65}
	answer, err := s.ask(t.Context(), "hello", pmixHello(testNamespace, 1, "v21", 0, 0), false)
	if err != nil || !bytes.Equal(answer.body, d[0][1]) {
		t.Fatalf("hello: %x, %v", answer.body, err)
	}
	const key = "chorale.a"
	if err := errors.Join(s.put(t.Context(), key, "vvvvv"), s.fence(t.Context())); err != nil {
		t.Error(err)
	}
	if value, err := s.get(t.Context(), key); value != "vvvvv" || err != nil {
		t.Errorf("%q, %v", value, err)
	}
	if err := s.finalize(t.Context()); err != nil {
		t.Error(err)
	}
	s.close()
	if err := <-report; err != nil {
		t.Error(err)
	}
}

// reply is a message of the server.
func reply(tag uint32, body packer) []byte { return pmixRequest(0, tag, body) }

func status(n int32) (p packer) {
	p.item()
	p.u32(uint32(n))
	return p
}

// found is the body of an answer with a value.
func found(rank uint32, key string, kind uint16, value packer) packer {
	var v packer
	v.process(testNamespace, rank)
	v.item()
	v.string(key)
	v.u16(kind)
	v = append(v, value...)
	p := status(0)
	p.item()
	p.size(len(v))
	return append(p, v...)
}

func number(n uint32) (p packer) { p.u32(n); return p }

func text(s string) (p packer) { p.string(s); return p }

// pmixAnswers are what a server says to rank 1 of a job of three that shares a value and
// leaves.
func pmixAnswers() [][]byte {
	return [][]byte{
		{0, 0, 0, 0, 0, 0, 0, 7},
		reply(100, found(pmixAllRanks, "pmix.job.size", pmixUint32, number(3))),
		reply(101, status(0)),
		reply(102, found(0, "chorale-0-0", pmixString, text(splitValue(someValue, maxPMIxValue)[0]))),
		reply(103, status(0)),
	}
}

// serve answers each message of the client.
func serveAnswers(conn net.Conn, answers [][]byte) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for i, answer := range answers {
		var header [pmixHeader]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(header[8:])
		if i == 0 {
			length = binary.NativeEndian.Uint32(header[8:])
		}
		if _, err := r.Discard(int(length)); err != nil {
			return
		}
		conn.Write(answer)
	}
}

// visitPMIx has rank 1 share a value and leave.
func visitPMIx(ctx context.Context, conn net.Conn) (value string, p *Place, err error) {
	p = &Place{Reason: "PMIX_RANK=1", Rank: 1, Size: unknown}
	p.connect = func(ctx context.Context, p *Place) (store, error) {
		return connectPMIx(ctx, p, conn, testNamespace, "v21")
	}
	session, err := p.Connect(ctx)
	if err != nil {
		return "", p, err
	}
	value, err = session.Share(ctx, "")
	return value, p, errors.Join(err, session.Finalize(ctx))
}

func TestThePMIxServerKnowsTheSize(t *testing.T) {
	unasked := reply(1, make(packer, 10000))
	for _, more := range [][]byte{nil, unasked, append(reply(0, nil), unasked...)} {
		answers := pmixAnswers()
		answers[3] = append(more, answers[3]...)
		client, server := net.Pipe()
		go serveAnswers(server, answers)
		value, p, err := visitPMIx(t.Context(), client)
		if value != someValue || err != nil || p.Size != 3 {
			t.Errorf("%q, %v, %+v", value, err, p)
		}
	}
}

func TestAPMIxServerThatClosesInTheMiddleIsAnError(t *testing.T) {
	for i, answer := range pmixAnswers() {
		for cut := range answer {
			answers := pmixAnswers()[:i+1]
			answers[i] = answer[:cut]
			client, server := net.Pipe()
			go serveAnswers(server, answers)
			if _, _, err := visitPMIx(t.Context(), client); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("answer %d after %d bytes: %v", i, cut, err)
			}
		}
	}
}

// An answer that ends early is one whose header says so.
func TestShortAnswersOfAPMIxServerAreErrors(t *testing.T) {
	for i, answer := range pmixAnswers()[1:] {
		for length := range len(answer) - pmixHeader {
			answers := pmixAnswers()
			short := bytes.Clone(answer[:pmixHeader+length])
			binary.BigEndian.PutUint32(short[8:], uint32(length))
			answers[i+1] = short
			client, server := net.Pipe()
			go serveAnswers(server, answers)
			if _, _, err := visitPMIx(t.Context(), client); err == nil {
				t.Errorf("answer %d with %d bytes of %d: no error", i+1, length, len(answer)-pmixHeader)
			}
		}
	}
}

func TestPMIxAnswersThatCannotBeAreErrors(t *testing.T) {
	huge := reply(100, nil)
	binary.BigEndian.PutUint32(huge[8:], 1<<31)
	twice := found(pmixAllRanks, "pmix.job.size", pmixUint32, number(3))
	twice[3] = 2
	for _, test := range []struct {
		at     int
		answer []byte
		want   string
	}{
		{0, []byte{0xff, 0xff, 0xff, 0xff}, "PMIX_RANK=1: hello: the launcher refuses rank 1: PMIx status -1"},
		{1, reply(100, status(-24)), "get pmix.job.size: the launcher refuses: PMIx status -24"},
		{1, huge, "sends a message of 2147483648 bytes: want at most 1048576"},
		{1, reply(199, status(0)), "the launcher answers request 199: want 100"},
		{1, reply(100, twice), "2 items in the place of one"},
		{1, reply(100, found(pmixAllRanks, "pmix.job.size", pmixUint32, number(0))), "the value 0 of type 14: want a number from 1"},
		{1, reply(100, found(pmixAllRanks, "pmix.job.size", pmixUint32, number(0xffffffff))), "the value 4294967295"},
		{1, reply(100, found(pmixAllRanks, "pmix.job.size", pmixString, text("many"))), "of type 3: want a number"},
		{1, reply(100, found(pmixAllRanks, "pmix.univ.size", pmixUint32, number(3))), "get pmix.job.size: the launcher's answer lacks it"},
		{1, reply(100, found(pmixAllRanks, "pmix.univ.size", 99, number(3))), "a value of type 99 that was not asked for"},
		{1, reply(100, found(pmixAllRanks, "pmix.job.size", pmixUint32, number(1))), "this is rank 1 of 1: want a rank below"},
		{2, reply(101, status(-1)), "fence: the launcher refuses: PMIx status -1"},
		{3, reply(102, found(0, "chorale-0-0", pmixUint32, number(3))), "a value of type 14, or none: want a text"},
		{3, reply(102, found(0, "chorale-0-0", pmixString, packer{0, 0, 0, 2, 'a', 'b'})), "a value of type 3, or none: want a text"},
		{3, reply(102, found(0, "chorale-0-0", pmixString, text("0001.00020.00000000."+strings.Repeat("A", 20)))), "its store changes values"},
	} {
		answers := pmixAnswers()
		answers[test.at] = test.answer
		client, server := net.Pipe()
		go serveAnswers(server, answers)
		_, _, err := visitPMIx(t.Context(), client)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

func TestAbortReturnsWhenAPMIxServerHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		answers := pmixAnswers()[:2]
		go serveAnswers(server, append(answers, reply(101, status(0))))
		p := &Place{Rank: 1, Size: unknown}
		store, err := connectPMIx(t.Context(), p, client, testNamespace, "v21")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := store.abort(5, "the disk is full"); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		store.close()
	})
}

func TestASilentPMIxServerIsNotWaitedForLongerThanAMinute(t *testing.T) {
	for answers := range 2 {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			go func() {
				if answers == 0 {
					io.Copy(io.Discard, server)
					server.Close()
					return
				}
				silent := struct{ net.Conn }{server}
				serveAnswers(keepOpen{silent}, pmixAnswers()[:answers])
				io.Copy(io.Discard, server)
				server.Close()
			}()
			start := time.Now()
			_, _, err := visitPMIx(t.Context(), client)
			if err == nil || !strings.Contains(err.Error(), "the launcher has not answered: 1m0s have passed") || time.Since(start) != answerLimit {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}

// Messages that nobody asked for are no answer, however many come.
func TestAPMIxServerThatTalksOfOtherThingsIsNotWaitedForLongerThanAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		var talks sync.WaitGroup
		talks.Go(func() {
			serveAnswers(keepOpen{server}, pmixAnswers()[:1])
			go io.Copy(io.Discard, server)
			for {
				if _, err := server.Write(reply(2, make(packer, 100))); err != nil {
					server.Close()
					return
				}
				time.Sleep(time.Second)
			}
		})
		defer talks.Wait()
		start := time.Now()
		_, _, err := visitPMIx(t.Context(), client)
		if err == nil || !strings.Contains(err.Error(), "get pmix.job.size: the launcher has not answered: 1m0s have passed") || time.Since(start) != answerLimit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// keepOpen is a connection that somebody else closes.
type keepOpen struct{ net.Conn }

func (keepOpen) Close() error { return nil }

// FuzzPMIx has a PMIx server say anything.
func FuzzPMIx(f *testing.F) {
	f.Add(bytes.Join(pmixAnswers(), nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0xfb})
	f.Add(append([]byte{0, 0, 0, 0, 0, 0, 0, 1}, reply(2, make(packer, 100))...))
	f.Fuzz(func(t *testing.T, says []byte) {
		client, server := net.Pipe()
		go io.Copy(io.Discard, server)
		go func() {
			server.Write(says)
			server.Close()
		}()
		value, p, err := visitPMIx(t.Context(), client)
		if err == nil && (p.Rank >= p.Size || p.Size > maxRanks || len(value) > maxShared) {
			t.Errorf("%x: %+v, %d bytes", says, p, len(value))
		}
	})
}
