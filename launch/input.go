package launch

import (
	"io"
	"os"
)

// feed copies the launcher's standard input to rank 0, until either ends. Run does
// not wait for it, because a read from a terminal may block for ever.
func feed(w *os.File, r io.Reader, over <-chan struct{}) {
	defer w.Close()
	if f, ok := r.(*os.File); ok && !foreground(f, over) {
		return
	}
	io.Copy(w, r)
}
