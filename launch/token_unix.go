//go:build unix

package launch

import (
	"io/fs"
	"os"
	"syscall"
)

// openToAll reports whether every user of the system can read a file.
func openToAll(info fs.FileInfo) bool { return info.Mode().Perm()&0o007 != 0 }

// othersWrite reports whether other users can write to a file or a directory, or could if
// they wanted to: its owner may change its mode.
func othersWrite(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0
}
