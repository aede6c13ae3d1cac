package launch

import (
	"context"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/mixed"
)

// quiet is an endpoint whose exchanges are over at once.
type quiet struct{ mixed.Part }

func (quiet) Exchange(context.Context, transport.Step) error { return nil }

func TestAnEndpointThatHearsFromTheLauncherAllocatesNothing(t *testing.T) {
	a := &attached{Part: quiet{}}
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _ = a.Exchange(ctx, transport.Step{}) }); n != 0 {
		t.Errorf("%v allocations per exchange", n)
	}
}
