package launch

import (
	"context"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// noop is an endpoint whose exchanges return at once.
type noop struct{ transport.ProcessEndpoint }

func (noop) Exchange(context.Context, transport.Step) error { return nil }

func TestAnAttachedEndpointAllocatesNothing(t *testing.T) {
	a := &attached{ProcessEndpoint: noop{}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _ = a.Exchange(ctx, transport.Step{}) }); n != 0 {
		t.Errorf("%v allocations per exchange", n)
	}
}
