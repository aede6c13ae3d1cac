//go:build !linux

package launch

import (
	"errors"
	"os"
)

// inherited fails: ranks share memory on Linux only.
func inherited(int, int64) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }
