package tcp

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// fuzzTimeout is how long a call may take whose peer has gone: much longer than it
// needs.
const fuzzTimeout = 30 * time.Second

// FuzzFrames plays a peer that is a rank of the job, says anything, and goes. This rank
// must come to an end with an error that says so, or with messages; hold no more than
// what it was sent; and allocate in proportion to that.
func FuzzFrames(f *testing.F) {
	const tag, name = "\x07\x00\x00\x00\x00\x00\x00\x00", "bytes"
	message := func(context uint32, body, total int) []byte {
		h := frame(header{kind: messageFrame, context: context, sequence: 1, body: body, total: total}, "test")
		return append(h, make([]byte, body)...)
	}
	chunk := func(context uint32, body, total int) []byte {
		return append(frame(header{kind: chunkFrame, context: context, sequence: 1, body: body, total: total}, ""), make([]byte, body)...)
	}
	eager := append(frame(header{kind: eagerFrame, context: 1, body: 2, total: 2}, tag+name), "ok"...)
	for _, seed := range [][][]byte{
		{message(1, 4, 4)},
		{message(1, 2, 4), chunk(1, 2, 4)},
		{message(1, 2, 4), message(2, 1, 3), eager, chunk(2, 2, 3), chunk(1, 2, 4)},
		{message(2, 2, 1<<40), message(1, 4, 4), frame(header{kind: leftFrame}, "bye")},
		{message(3, 0, 0), message(3, 0, 0), message(2, 0, 0), message(1, 4, 4)},
		{frame(header{kind: holdFrame, context: 1}, ""), message(1, 4, 4), frame(header{kind: resumeFrame, context: 1}, "")},
		{frame(header{kind: abortFrame}, "enough"), message(1, 4, 4)},
		{frame(header{kind: probeFrame, context: 1, sequence: 2}, "other")},
		{frame(header{kind: mismatchFrame, context: 1, sequence: 1}, "\x02\x00\x00\x00\x05\x00\x00\x00othertest")},
		{eager, frame(header{kind: creditFrame, total: 1 << 40}, "")},
		{frame(header{kind: rtsFrame, context: 1, sequence: 1, total: 2}, tag+name), frame(header{kind: withdrawFrame, sequence: 1}, "")},
		{frame(header{kind: rtsFrame, context: 1, sequence: 1, total: 2}, tag+name), append(frame(header{kind: fragmentFrame, sequence: 1, body: 2, total: 2}, ""), "ok"...)},
		{frame(header{kind: ctsFrame, sequence: 1}, "")},
		{message(1, 2, 4), frame(header{kind: revocationFrame}, "\x02\x00\x00\x00\x00gone"), chunk(1, 2, 4)},
		{message(1, 2, 4), frame(header{kind: revocationFrame}, "\x00\x01\x00\x00\x00"), message(1, 4, 4), eager},
		{frame(header{kind: revocationFrame, context: 7}, "\x00\x01\x00\x00\x00"), frame(header{kind: revocationFrame, context: 1 << 20}, "\x00\x01\x00\x00\x00")},
		{frame(header{kind: revocationFrame, context: 7}, "\x00\x02\x00\x00\x00")},
	} {
		f.Add(bytes.Join(seed, nil))
	}
	f.Fuzz(func(t *testing.T, says []byte) {
		if len(says) > 1<<20 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e, c := impostor(t)
		ctx, cancel := context.WithTimeout(t.Context(), fuzzTimeout)
		defer cancel()
		stepped := cluster.Begin(ctx, func(ctx context.Context) error {
			return receive(ctx, e, sig, 1, make([]byte, 4))
		})
		tagged := cluster.Begin(ctx, func(ctx context.Context) error {
			into := make([]byte, 2)
			_, err := e.Recv(ctx, transport.Any, transport.Match{Context: 1, Tag: 7}, "bytes", into)
			return err
		})
		c.Write(says) // this rank may have closed the connection
		c.Close()
		for what, ended := range map[string]<-chan error{"the step": stepped, "the receive": tagged} {
			if err := <-ended; err != nil && (ctx.Err() != nil || !foreseen(err)) {
				t.Errorf("%s ends with %v", what, err)
			}
		}
		frames := len(says)/headerLen + 1
		if h := e.Held(); h.Unexpected > len(says)+frames*transport.MessageCost || h.Tagged > len(says)+frames*transport.MessageCost || h.Unsent > 0 {
			t.Errorf("of %d bytes, %+v is held", len(says), h)
		}
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20+200*uint64(len(says)) {
			t.Errorf("%d bytes make this rank allocate %d", len(says), n)
		}
	})
}

// foreseen reports whether an error is one that a peer's frames may cause.
func foreseen(err error) bool {
	var (
		peer     *transport.PeerError
		mismatch *transport.MismatchError
		size     *transport.SizeError
		typeErr  *transport.TypeError
	)
	return errors.As(err, &peer) && peer.Peer <= 1 || // a revocation may name either rank
		errors.As(err, &mismatch) || errors.As(err, &size) || errors.As(err, &typeErr)
}

// FuzzHeader reads any header, and writes it as it was.
func FuzzHeader(f *testing.F) {
	f.Add(header{kind: messageFrame, text: 4, body: 4, context: 1, sequence: 2, total: 8}.append(nil))
	f.Add(header{kind: resumeFrame, context: 1<<32 - 1}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerLen {
			return
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if h.text > textMax || h.body > bodyMax || h.total < 0 || h.body > 0 && !h.kind.hasBody() {
			t.Errorf("a header with %+v is accepted", h)
		}
		if again := h.append(nil); !bytes.Equal(again, b[:headerLen]) {
			t.Errorf("%x is read as %+v, which is %x", b[:headerLen], h, again)
		}
	})
}
