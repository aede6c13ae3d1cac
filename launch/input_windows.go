package launch

import "os"

// foreground waits until this process may read from f, which here is always.
func foreground(*os.File, <-chan struct{}) bool { return true }
