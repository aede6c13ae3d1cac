package launch

import (
	"io"
	"os"
)

// feed copies the launcher's standard input to rank 0, until either ends. It
// is not waited for: a read from a terminal ends when somebody types.
func feed(w *os.File, r io.Reader, over <-chan struct{}) {
	defer w.Close()
	if f, ok := r.(*os.File); ok && !foreground(f, over) {
		return
	}
	io.Copy(w, r)
}
