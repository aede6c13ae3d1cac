//go:build !linux

package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Shared memory needs what Linux alone has: memory files, futexes between
// processes, locks that end with their process.

func createMemory(_, _ int64) (*os.File, error) {
	return nil, fmt.Errorf("shared memory between processes needs Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func reopen(*os.File) (file, own *os.File, err error)        { return nil, nil, errors.ErrUnsupported }
func mapFile(*os.File, int64, int) ([]byte, error)           { return nil, errors.ErrUnsupported }
func unmapFile([]byte) error                                 { return nil }
func commitHuge(*os.File, int64, []byte) (error, error)      { return nil, errors.ErrUnsupported }
func decommit([]byte)                                        {}
func holdsRank(*os.File, int, int64, int64) bool             { return false }
func lockRank(*os.File, int) bool                            { return true }
func rankLocked(*os.File, int) bool                          { return true }
func futexWait(*uint32, uint32, time.Duration)               {}
func futexWake(*uint32)                                      {}
func yield()                                                 {}
func allowPtrace()                                           {}
func collapse(uintptr, uintptr) (bool, time.Duration, error) { return false, 0, nil }

func (*rankState) own() (func(), error) { return nil, errors.ErrUnsupported }

func readPeer(int, []byte, uintptr, *uint64, uintptr) error { return errors.ErrUnsupported }
