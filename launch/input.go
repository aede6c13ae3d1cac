package launch

import (
	"io"
	"os"
)

// feed copies the launcher's standard input to rank 0, until either ends. Run does
// not wait for it, because a read may block for ever.
func feed(w io.WriteCloser, r io.Reader, over <-chan struct{}) {
	defer w.Close()
	if f, ok := r.(*os.File); ok && isTerminal(f) {
		r = terminal{f, over}
	}
	io.Copy(w, r)
}

// A terminal is read only while this process runs in its foreground, until over is
// closed. The kernel stops a process in the background that reads, or that goes on
// with a read which it began in the foreground.
type terminal struct {
	file *os.File
	over <-chan struct{}
}

func (t terminal) Read(p []byte) (int, error) {
	for {
		select {
		case <-t.over:
			return 0, io.EOF
		default:
		}
		if mayRead(t.file) {
			return t.file.Read(p)
		}
	}
}
