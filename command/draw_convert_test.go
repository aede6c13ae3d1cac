package command

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// The error for a PNG or a PDF names a command that makes it.
func TestFiguresBecomePNGAndPDFByTheNamedCommand(t *testing.T) {
	if _, err := exec.LookPath("rsvg-convert"); err != nil {
		testenv.Skip(t, "rsvg-convert, which converts figures, is not in PATH")
	}
	dir := t.TempDir()
	for _, f := range []string{"network", "spacetime", "blocks", "cost-m"} {
		figure := filepath.Join(dir, f+".svg")
		if status := run([]string{"draw", "bcast", "-n", "8", "-m", "64", "--figure", f, "-o", figure}); status != 0 {
			t.Fatalf("%s: status %d", f, status)
		}
		for extension, begin := range map[string]string{".png": "\x89PNG", ".pdf": "%PDF"} {
			output := filepath.Join(dir, f+extension)
			_, err := figureFor("", output)
			if err == nil {
				t.Fatalf("%s: no error", output)
			}
			_, command, _ := strings.Cut(err.Error(), "then ")
			words := strings.Fields(command)
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", command, err, out)
				continue
			}
			data, err := os.ReadFile(output)
			if err != nil || !bytes.HasPrefix(data, []byte(begin)) {
				t.Errorf("%s: %v, begins with %.8q", output, err, data)
				continue
			}
			if extension == ".png" && !colored(t, data) {
				t.Errorf("%s: no color", output)
			}
		}
	}
}

// colored reports whether a picture has a pixel that is no shade of gray.
func colored(t *testing.T, data []byte) bool {
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b := picture.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if r, g, blue, _ := picture.At(x, y).RGBA(); max(r, g, blue)-min(r, g, blue) > 0x4000 {
				return true
			}
		}
	}
	return false
}
