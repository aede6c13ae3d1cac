package launch

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/netns"
	"github.com/chorale-go/chorale/internal/network"
)

// onNamespaces is the configuration of a job whose hosts are network namespaces. The launcher
// is in the first.
func onNamespaces(t *testing.T, hosts [2]netns.Host, slots int, program string, args ...string) Config {
	t.Helper()
	cfg := config(t, 0, program, args...)
	var list []Host
	for _, h := range hosts {
		list = append(list, Host{Name: h.Process, Slots: slots})
	}
	cfg.Remote = &Remote{Hosts: list, Launcher: netns.Enter("{host}"), AgentArgs: []string{"agent"}, NoCopy: true}
	return cfg
}

// No packet tells anybody that the host is gone, and its agent's connection stays.
func TestAHostThatIsUnpluggedIsLostToTheOthersWhichGoOn(t *testing.T) {
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	for _, transport := range []string{"auto", "tcp"} {
		late := []time.Duration{0}
		for runs := 0; len(late) > 0 && runs < 3; runs++ { // a busy machine may not run a rank for a second
			late = unplugged(t, hosts, transport)
		}
		if len(late) > 0 {
			t.Errorf("%s: in each of 3 jobs, the loss is heard late: after %v", transport, late)
		}
	}
}

// unplugged runs a job of which a host is unplugged, and returns how long those take to hear of
// it that take more than LossTimeout.
func unplugged(t *testing.T, hosts [2]netns.Host, transport string) (late []time.Duration) {
	t.Helper()
	var unplugged, said time.Time
	r := new(result)
	cfg := continuing(onNamespaces(t, hosts, 2, "outlive", "2", "3"), r)
	cfg.Transport = transport
	cfg.Stdout = writerFunc(func(p []byte) (int, error) {
		n, err := r.out.Write(p)
		if strings.Count(r.out.String(), "joined\n") == 4 && unplugged.IsZero() {
			unplugged = time.Now()
			hosts[1].IP(t, "link", "set", "eth0", "down")
		}
		return n, err
	})
	cfg.Stderr = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), " lost: ") && said.IsZero() {
			said = time.Now()
		}
		return r.err.Write(p)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	err := Run(ctx, cfg)
	netns.PlugIn(t, hosts, 1)
	heard := times(r.out.String(), "hears")
	if err != nil || len(heard) != 2 || said.IsZero() || strings.Count(r.out.String(), "regrouped 2\n") != 2 {
		t.Errorf("%s: %v\n%s%s", transport, err, &r.out, &r.err)
	}
	for _, at := range append(heard, said) {
		took := at.Sub(unplugged)
		t.Logf("%s: heard after %v", transport, took)
		if took > network.LossTimeout {
			late = append(late, took)
		}
	}
	return late
}
