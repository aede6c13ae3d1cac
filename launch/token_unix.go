//go:build unix

package launch

import "io/fs"

// openToAll reports whether every user of the system can read a file.
func openToAll(info fs.FileInfo) bool { return info.Mode().Perm()&0o007 != 0 }
