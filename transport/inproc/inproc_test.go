package inproc

import (
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/transporttest"
)

func start(_ *testing.T, n int) []transport.Endpoint {
	j := New(n)
	ends := make([]transport.Endpoint, n)
	for rank := range ends {
		ends[rank] = j.Endpoint(rank)
	}
	return ends
}

func TestEndpointsKeepTheContract(t *testing.T) { transporttest.Run(t, start) }
