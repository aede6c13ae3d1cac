//go:build unix

package tcp

import (
	"context"
	"syscall"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

func TestAnOperationThatNeedsADescriptorWhereNoneIsFreeIsAnError(t *testing.T) {
	ends := job(t, 2)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	err := receive(context.Background(), ends[0], sig, 1, nil)
	syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	checkPeer(t, err, 1, transport.ErrLost, "too many open files")
}
