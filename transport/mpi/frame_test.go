package mpi

import (
	"bytes"
	"testing"
)

// build returns a frame.
func build(h header, text string, body []byte) []byte {
	h.text = len(text)
	n := headerLen + len(text)
	if h.kind.hasBody() {
		n = bodyAt(h.text) + len(body)
	}
	b := make([]byte, n)
	h.put(b)
	copy(b[headerLen:], text)
	copy(b[n-len(body):], body)
	return b
}

func TestAFrameIsParsedAsItWasWritten(t *testing.T) {
	want := header{
		kind: messageFrame, slot: 31, text: 4, number: 1<<32 - 1, context: 7, sequence: 8,
		total: 5, offset: 9, order: 10, taken: 11,
	}
	got, text, body, err := parse(build(want, "call", []byte("bytes")))
	if err != nil || got != want || string(text) != "call" || string(body) != "bytes" {
		t.Errorf("got %+v, %q, %q, %v", got, text, body, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(build(header{kind: messageFrame, total: 5}, "call", []byte("bytes")))
	f.Add(build(header{kind: pullFrame, slot: 3, total: 1 << 20, offset: 1 << 21}, "", nil))
	f.Add(build(header{kind: mismatchFrame}, "\x01\x00\x00\x00\xff\xff\xff\xffab", nil))
	f.Add(build(header{kind: eagerFrame, total: 0}, "float64", nil))
	f.Add([]byte{byte(leftFrame)})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, text, body, err := parse(b)
		if err != nil {
			return
		}
		if len(text) != h.text || h.kind.hasBody() && len(body) != h.total || !h.kind.hasBody() && len(body) > 0 {
			t.Fatalf("%+v with a text of %d bytes and a body of %d", h, len(text), len(body))
		}
		if again, text2, body2, err := parse(build(h, string(text), body)); err != nil || again != h || !bytes.Equal(text, text2) || !bytes.Equal(body, body2) {
			t.Fatalf("%+v is written as %+v, %v", h, again, err)
		}
	})
}
