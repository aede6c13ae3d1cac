package output

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sinks are those of a launcher that writes to one file.
func sinks(w io.Writer) (out, err *Sink) {
	return NewSinks(w, w, nil, func(error) {})
}

// hold is how many bytes of a line the streams of these tests hold back.
const hold = 100_000

// forward returns what a sink gets of a stream.
func forward(label string, r io.Reader, hold int) string {
	var got strings.Builder
	to, _ := sinks(&got)
	(&Stream{To: to, Label: label, Hold: hold}).Copy(r)
	return got.String()
}

var splits = map[string]func(io.Reader) io.Reader{
	"whole":         func(r io.Reader) io.Reader { return r },
	"byte by byte":  iotest.OneByteReader,
	"in halves":     iotest.HalfReader,
	"data with EOF": iotest.DataErrReader,
}

func TestLinesAreLabeledHoweverTheReadsSplitThem(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"\n", "# \n"},
		{"a", "# a\n"},
		{"a\n", "# a\n"},
		{"a\nb", "# a\n# b\n"},
		{"a\n\nb\r\nc", "# a\n# \n# b\r\n# c\n"},
		{"\xff\x00\n\xc3", "# \xff\x00\n# \xc3\n"},
		{long + "\n" + long, "# " + long + "\n# " + long + "\n"},
	} {
		for name, split := range splits {
			if diff := cmp.Diff(test.want, forward("# ", split(strings.NewReader(test.in)), MaxLine)); diff != "" {
				t.Errorf("%.20q %s: (-want +got)\n%.200s", test.in, name, diff)
			}
			if diff := cmp.Diff(test.in, forward("", split(strings.NewReader(test.in)), MaxLine)); diff != "" {
				t.Errorf("%.20q %s, without labels: (-want +got)\n%.200s", test.in, name, diff)
			}
		}
	}
}

func TestALineOfAnyLengthIsOneLine(t *testing.T) {
	for _, size := range []int{hold - 1, hold, hold + 1, 5*hold + 17} {
		long := strings.Repeat("x", size)
		for _, end := range []string{"", "\n", "\nnext", "\nnext\n" + long} {
			in := long + end
			want := "# " + strings.ReplaceAll(strings.TrimSuffix(in, "\n"), "\n", "\n# ") + "\n"
			if got := forward("# ", strings.NewReader(in), hold); got != want {
				t.Errorf("%d bytes and %.6q: %d bytes forwarded, want %d", size, end, len(got), len(want))
			}
			if got := forward("", strings.NewReader(in), hold); got != in {
				t.Errorf("%d bytes and %.6q, without labels: %d bytes forwarded, want %d", size, end, len(got), len(in))
			}
		}
	}
}

func TestTheMemoryOfALineIsBounded(t *testing.T) {
	to, _ := sinks(io.Discard)
	s := &Stream{To: to, Label: "# ", Hold: MaxLine}
	s.Copy(io.LimitReader(endless{}, 20*MaxLine))
	if cap(s.buf) > 3*MaxLine {
		t.Errorf("it takes %d bytes, want about %d", cap(s.buf), MaxLine)
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
	to, _ := sinks(check)
	(&Stream{To: to, Label: "# ", Hold: MaxLine}).Copy(iotest.HalfReader(strings.NewReader(strings.Repeat("0123456789\n", 10_000))))
}

// A duet is two ranks that print to one file, one of them on standard error.
type duet struct {
	one, two *Stream
	got      strings.Builder
}

func newDuet(labels bool) *duet {
	d := new(duet)
	out, err := sinks(&d.got)
	d.one, d.two = &Stream{To: out, Hold: hold}, &Stream{To: err, Hold: hold}
	if labels {
		d.one.Label, d.two.Label = "1 ", "2 "
	}
	return d
}

var long = strings.Repeat("x", hold)

func TestALineThatGoesOnIsNotTorn(t *testing.T) {
	for _, labels := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDuet(labels)
			d.one.add([]byte(long))
			go func() {
				d.two.add([]byte("short\n"))
				d.two.add([]byte("shorter\n"))
			}()
			for range lineWaits {
				time.Sleep(lineWait * 9 / 10)
				d.one.add([]byte("y"))
			}
			d.one.add([]byte("z\n"))
			synctest.Wait()
			want := d.one.Label + long + "yyz\n" + d.two.Label + "short\n" + d.two.Label + "shorter\n"
			if d.got.String() != want {
				t.Errorf("got %s", brief(d.got.String()))
			}
		})
	}
}

func TestALineThatKeepsOthersWaitingIsCutVisibly(t *testing.T) {
	for name, test := range map[string]struct {
		pause time.Duration
		waits time.Duration // of the other line
	}{
		"it does not grow": {time.Hour, lineWait},
		"it never ends":    {lineWait * 9 / 10, lineWaits * lineWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDuet(true)
				d.one.add([]byte(long))
				begin := time.Now()
				done := make(chan time.Duration)
				go func() {
					d.two.add([]byte("short\n"))
					done <- time.Since(begin)
				}()
				ticker := time.NewTicker(test.pause)
				for waiting := true; waiting; {
					select {
					case <-ticker.C:
						d.one.add([]byte("y"))
					case waited := <-done:
						waiting = false
						if waited != test.waits {
							t.Errorf("the other line waits for %v, want %v", waited, test.waits)
						}
					}
				}
				d.one.add([]byte("rest\nnext\n"))
				parts := strings.SplitAfter(strings.ReplaceAll(d.got.String(), "y", ""), "\n")
				want := []string{"1 " + long + "[...]\n", "2 short\n", "1 [...]rest\n", "1 next\n", ""}
				if !cmp.Equal(parts, want) {
					t.Errorf("got %s", brief(d.got.String()))
				}
			})
		})
	}
}

func TestALineThatHasBeenCutKeepsNobodyWaitingAgain(t *testing.T) {
	for _, labels := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDuet(labels)
			d.one.add([]byte(long))
			d.two.add([]byte("short\n"))
			begin := time.Now()
			for range 3 {
				d.one.add([]byte("y"))
				d.two.add([]byte("short\n"))
			}
			if waited := time.Since(begin); waited > 0 {
				t.Errorf("labels %v: other lines wait for %v more", labels, waited)
			}
			d.one.add([]byte("\n"))
			d.one.add([]byte(long))
			begin = time.Now()
			if d.two.add([]byte("short\n")); time.Since(begin) != lineWait {
				t.Errorf("labels %v: the next line may go on for %v", labels, time.Since(begin))
			}
		})
	}
}

func TestACutChangesNothingWithoutLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDuet(false)
		d.one.add([]byte(long))
		d.two.add([]byte("short\n"))
		d.one.add([]byte("rest\nnext"))
		d.one.end()
		if got := d.got.String(); got != long+"short\nrest\nnext" {
			t.Errorf("got %s", brief(got))
		}
	})
}

func TestALineWhoseProcessEndsKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDuet(true)
		d.one.add([]byte(long))
		d.one.end()
		begin := time.Now()
		d.two.add([]byte("short\n"))
		if got := d.got.String(); got != "1 "+long+"\n2 short\n" || time.Since(begin) > 0 {
			t.Errorf("after %v: %s", time.Since(begin), brief(got))
		}
	})
}

// brief returns a text with its long lines shortened.
func brief(text string) string { return strings.ReplaceAll(text, long, "x…") }

func TestAnOutputThatFailsIsReportedOnceAndThenDropped(t *testing.T) {
	broken := errors.New("broken")
	var reported []error
	out, _ := NewSinks(failing{broken}, io.Discard, nil, func(err error) { reported = append(reported, err) })
	s := &Stream{To: out, Label: "# ", Hold: MaxLine}
	for range 3 {
		s.add([]byte("line\n"))
	}
	if len(reported) != 1 || reported[0] != broken {
		t.Errorf("reported %v, want it once", reported)
	}
}

// A writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// However reads split a text, its lines get a label each; without labels, its bytes
// are forwarded as they are.
func FuzzLines(f *testing.F) {
	f.Add("a\n\nb\r\nc", uint8(1), uint8(100))
	f.Add("no end", uint8(3), uint8(5))
	f.Add("\xff\x00\n", uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, text string, step, hold uint8) {
		read := func() io.Reader { return &steps{strings.NewReader(text), 1 + int(step)} }
		if got := forward("", read(), int(hold)); got != text {
			t.Fatalf("without labels: got %q", got)
		}
		got := forward("[7] ", read(), 1+int(hold))
		var back strings.Builder
		for line := range strings.Lines(got) {
			rest, labeled := strings.CutPrefix(line, "[7] ")
			if !labeled || line[len(line)-1] != '\n' {
				t.Fatalf("the line %q of %q", line, got)
			}
			back.WriteString(rest)
		}
		want := text
		if text != "" && !strings.HasSuffix(text, "\n") {
			want += "\n"
		}
		if back.String() != want {
			t.Fatalf("got %q", got)
		}
	})
}

// steps reads n bytes at a time.
type steps struct {
	r io.Reader
	n int
}

func (s *steps) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }

// The caller of Run may use the file when Run has returned.
func TestNothingIsWrittenWhenTheJobIsOver(t *testing.T) {
	over := make(chan struct{})
	var b strings.Builder
	out, _ := NewSinks(&b, io.Discard, over, func(err error) { t.Error(err) })
	close(over)
	for range 100 {
		out.write(&Stream{To: out}, []byte("late\n"), false)
	}
	if b.Len() > 0 {
		t.Errorf("%d bytes are written", b.Len())
	}
}
