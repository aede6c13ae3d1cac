package launch

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestLinesAreLabeledHoweverTheReadsSplitThem(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"\n", "# \n"},
		{"a", "# a\n"},
		{"a\n", "# a\n"},
		{"a\nb", "# a\n# b\n"},
		{"a\n\nb\r\nc", "# a\n# \n# b\r\n# c\n"},
		{long + "\n" + long, "# " + long + "\n# " + long + "\n"},
	} {
		for name, split := range map[string]func(io.Reader) io.Reader{
			"whole":         func(r io.Reader) io.Reader { return r },
			"byte by byte":  iotest.OneByteReader,
			"in halves":     iotest.HalfReader,
			"data with EOF": iotest.DataErrReader,
		} {
			var got strings.Builder
			copyLines(&got, "# ", split(strings.NewReader(test.in)))
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Errorf("%.20q %s: (-want +got)\n%.200s", test.in, name, diff)
			}
		}
	}
}

func TestALineThatNeverEndsIsForwardedInPieces(t *testing.T) {
	pieces := 0
	longest := 0
	count := writerFunc(func(p []byte) (int, error) {
		for line := range strings.Lines(string(p)) {
			if !strings.HasPrefix(line, "# x") {
				t.Errorf("a piece begins with %.10q", line)
			}
			pieces++
			longest = max(longest, len(line))
		}
		return len(p), nil
	})
	copyLines(count, "# ", io.LimitReader(endless{}, 5*maxLine))
	if pieces != 5 || longest > maxLine+64<<10 {
		t.Errorf("%d pieces, the longest of %d bytes; want 5 of about %d", pieces, longest, maxLine)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEachLineIsOneWrite(t *testing.T) {
	check := writerFunc(func(p []byte) (int, error) {
		if len(p) > 0 && p[len(p)-1] != '\n' {
			t.Errorf("a write ends in the middle of a line: %.20q", p)
		}
		return len(p), nil
	})
	copyLines(check, "# ", iotest.HalfReader(strings.NewReader(strings.Repeat("0123456789\n", 10_000))))
}

func TestAnOutputThatFailsIsReportedOnceAndThenDropped(t *testing.T) {
	broken := errors.New("broken")
	var reported []error
	out, _ := newSinks(failing{broken}, io.Discard, func(err error) { reported = append(reported, err) })
	for range 3 {
		if n, err := out.Write([]byte("line\n")); n != 5 || err != nil {
			t.Errorf("%d, %v; want 5 bytes taken", n, err)
		}
	}
	if len(reported) != 1 || reported[0] != broken {
		t.Errorf("reported %v, want it once", reported)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
