package launch

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/join"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// leaveHost reports whether connections to some of the addresses leave this host. It goes
// by their text, so that both ends of a connection come to the same answer.
func leaveHost(addresses []string) bool {
	return slices.ContainsFunc(addresses, func(a string) bool {
		host, _, err := net.SplitHostPort(a)
		if err != nil {
			return true
		}
		ip, err := netip.ParseAddr(host)
		return host != "localhost" && (err != nil || !ip.IsLoopback())
	})
}

// controlAddresses returns where to look for the control server, the likeliest first.
func (e JobEnv) controlAddresses() ([]string, error) {
	if at := e.rendezvous(); at != nil && e.Rank > 0 {
		return meetingPlaces(at), nil
	}
	return network.Split(e.Control)
}

// leavesHost reports whether connections of the job leave this host, as far as all ranks
// can know it alike.
func (e JobEnv) leavesHost() bool {
	if at := e.rendezvous(); at != nil {
		return leaveHost(meetingPlaces(at))
	}
	return leaveHost(strings.Split(e.Control, ","))
}

// rendezvous returns where rank 0 listens in a job whose launcher has no key store.
func (e JobEnv) rendezvous() *join.Rendezvous {
	if e.Foreign == nil {
		return nil
	}
	return e.Foreign.Place.Rendezvous
}

// dialConfig returns how this rank joins the job.
func (e JobEnv) dialConfig() (control.DialConfig, error) {
	addresses, err := e.controlAddresses()
	if err != nil {
		return control.DialConfig{}, fmt.Errorf("rank %d does not join its job: %w", e.Rank, err)
	}
	return control.DialConfig{
		Rank: e.Rank, Size: e.Size, Secret: e.Secret,
		Addresses: addresses, Encrypted: e.leavesHost(), OfRanks: e.Foreign != nil, Early: e.mayBeEarly,
	}, nil
}

// mayBeEarly reports whether rank 0 may yet begin to listen at an address that all ranks
// know: at one of them nothing listens, or its name is not known yet.
func (e JobEnv) mayBeEarly(err error) bool {
	var dial *network.DialError
	at := e.rendezvous()
	return at != nil && errors.As(err, &dial) && slices.ContainsFunc(dial.Attempts, func(a network.Attempt) bool {
		var lookup *net.DNSError
		var connect *net.OpError
		if errors.As(a.Err, &lookup) {
			return at.LookupLimit > 0
		}
		return errors.As(a.Err, &connect)
	})
}

// listenForPeers returns a rank's listener and the addresses that it publishes: the one by
// which it has reached the control server, which has a route to the other ranks. The rank
// that serves the control connections has reached nobody by that, and publishes all that
// may be reached. Where the control connections stay on the host, all others do.
func listenForPeers(env JobEnv, local netip.Addr) (net.Listener, string, error) {
	if !env.leavesHost() {
		return listenAt([]netip.Addr{loopback}, 0)
	}
	if env.Foreign != nil && env.Rank == 0 {
		local = netip.Addr{}
	}
	return listenAll(local)
}

// listenAll listens at the addresses of this host that others may reach; local is one that
// has a route to them, or not valid.
func listenAll(local netip.Addr) (net.Listener, string, error) {
	selection, err := network.Candidates(os.Getenv(network.Variable))
	if err != nil {
		return nil, "", err
	}
	return listenAt(selection.Advertise(local), 0)
}

func listenAt(addresses []netip.Addr, port uint16) (net.Listener, string, error) {
	l, err := network.Listen(addresses, port)
	if err != nil {
		return nil, "", err
	}
	return l, network.Join(addresses, network.Port(l)), nil
}
