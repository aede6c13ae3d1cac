package draw

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares a picture with the file of that name in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has changed: look at it, and rewrite it with -update", file)
	}
}

// wellFormed fails unless the text is well-formed XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

func TestTextCannotBreakOutOfAFigure(t *testing.T) {
	hostile := "</text><script>\"'&\x00\x1b\xff]]>"
	s := newSVG(hostile, hostile, hostile, 10, 10)
	s.text(1, 2, hostile, "class", hostile)
	var b bytes.Buffer
	if err := s.writeTo(&b); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if strings.Contains(b.String(), "<script") {
		t.Error("text has become an element")
	}
}

func TestNumbersAreShortAndHaveOneForm(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {-0.001, "0"}, {1.004, "1"}, {2.0 / 3, "0.67"}, {-12.5, "-12.5"}, {1e6, "1000000"},
	} {
		if got := number(c.v); got != c.want {
			t.Errorf("%v is written %s, want %s", c.v, got, c.want)
		}
	}
}
