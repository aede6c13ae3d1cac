package progress

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chorale-go/chorale/transport"
)

func TestANoticeIsParsedAsItWasSent(t *testing.T) {
	mismatch := &transport.MismatchError{
		Rank: 3, Peer: 1,
		Mine:   transport.Signature{Context: 9, Sequence: 7, Call: "bcast"},
		Theirs: transport.Signature{Context: 9, Sequence: 1<<32 - 1, Call: "reduce sum"},
	}
	for _, test := range []struct{ sent, want Notice }{
		{Notice{Left: true, Reason: "its last call"}, Notice{Left: true, Reason: "its last call"}},
		{Notice{Reason: "why"}, Notice{Reason: "why"}},
		{Notice{Reason: strings.Repeat("x", 2*ReasonMax)}, Notice{Reason: strings.Repeat("x", ReasonMax)}},
		{Notice{Reason: "why", Mismatch: mismatch}, Notice{Mismatch: mismatch}},
		{Notice{Reason: "why", Mismatch: &transport.MismatchError{Rank: 3, Peer: 2}}, Notice{Reason: "why"}},
	} {
		kind, call, text := test.sent.To(1)
		call.Call = "" // is not sent with the kind
		got, err := ParseNotice(kind, call, []byte(text), 1, 3)
		if err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("%+v: got %+v, %v", test.sent, got, err)
		}
	}
}

func FuzzParseNotice(f *testing.F) {
	f.Add(byte(LeftNotice), []byte("barrier"))
	f.Add(byte(MismatchNotice), []byte("\x02\x00\x00\x00\x05\x00\x00\x00othertest"))
	f.Add(byte(MismatchNotice), []byte("\x01\x00\x00\x00\xff\xff\xff\xffab"))
	f.Fuzz(func(t *testing.T, kind byte, text []byte) {
		n, err := ParseNotice(NoticeKind(kind%3), transport.Signature{}, text, 0, 1)
		if m := n.Mismatch; m != nil && (err != nil || len(m.Mine.Call)+len(m.Theirs.Call)+8 != len(text)) {
			t.Fatalf("calls of %d and %d bytes in a text of %d, %v", len(m.Mine.Call), len(m.Theirs.Call), len(text), err)
		}
	})
}
