package tcp

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

func TestRanksThatDisagreeAboutEncryptionAreToldSo(t *testing.T) {
	for _, c := range []struct {
		kind    kind
		encrypt bool
		want    string
	}{
		{bySystem, true, "expects connections without TLS, and this process makes them with TLS"},
		{byTLS, false, "expects connections with TLS, and this process makes them without TLS"},
	} {
		ends, err := c.kind(2)
		cluster.Job(t, ends, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		one, err := New(Config{Rank: 1, Size: 2, Listener: l, Secret: ends[0].cfg.Secret, Encrypt: c.encrypt, Lookup: ends[0].cfg.Lookup})
		if err != nil {
			t.Fatal(err)
		}
		checkPeer(t, receive(context.Background(), one, sig, 0, nil), 0, transport.ErrLost, c.want)
		one.Close()
	}
}

// A rank may be behind one of several addresses, and others behind the rest.
func TestARankIsFoundBehindOneOfItsAddresses(t *testing.T) {
	ends := job(t, 3)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	address := func(rank int) string { return ends[rank].cfg.Listener.Addr().String() }
	all := []string{testenv.FreeAddress(t, "127.0.0.1"), address(2), silent.Addr().String(), address(1)}
	ends[0].cfg.Lookup = func(context.Context, int) (string, error) { return strings.Join(all, ","), nil }
	ends[1].cfg.Lookup = func(ctx context.Context, _ int) (string, error) {
		<-ctx.Done() // rank 0 dials alone
		return "", ctx.Err()
	}
	each(t, ends[:2], func(e *Endpoint) error { return swap(context.Background(), e, sig, 1-e.Rank()) })
}

// An address of which nothing is right is an error that lists all that was tried.
func TestARankThatIsBehindNoneOfItsAddressesIsLost(t *testing.T) {
	ends := job(t, 3)
	closed, other := testenv.FreeAddress(t, "127.0.0.1"), ends[2].cfg.Listener.Addr().String()
	for text, want := range map[string]string{
		closed + "," + other:         closed + ": connect: connection refused; " + other + ": what listens at " + other + " belongs to this job, but is not rank 1",
		"10.1.2.3":                   "the address \"10.1.2.3\": want as 10.1.2.3:4711",
		strings.Repeat("x:1,", 1024): "an address of 4096 bytes, at most 1024 are allowed",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(Config{Size: 3, Listener: l, Secret: ends[0].cfg.Secret, Lookup: func(context.Context, int) (string, error) { return text, nil }})
		if err != nil {
			t.Fatal(err)
		}
		checkPeer(t, receive(context.Background(), e, sig, 1, nil), 1, transport.ErrLost, want)
		e.Close()
	}
}
