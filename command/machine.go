package command

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/predict"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/topo"
)

// machineFlags are the flags of the machine that is simulated in place of the textbook's.
type machineFlags struct {
	file      string
	transport transports
	read      func() (*model.Profile, error) // of the file, once
}

// transports is the value of a flag: the transport of ranks on one host, and perhaps, after
// a comma, that between hosts.
type transports struct{ value, between string }

func (t *transports) String() string { return t.value }
func (t *transports) Type() string   { return "T" }

func (t *transports) Set(text string) error {
	within, between, given := strings.Cut(text, ",")
	err := oneOf(within, tunedTransports)
	if err == nil && given {
		err = oneOf(between, tunedTransports)
	}
	if err == nil {
		t.value, t.between = within, between
	}
	return err
}

// add adds the flags to a verb.
func (f *machineFlags) add(cmd *cobra.Command) {
	f.transport = transports{value: "shm"}
	addProfile(cmd, &f.file)
	f.read = sync.OnceValues(func() (*model.Profile, error) { return readProfile(f.file) })
	cmd.Flags().Var(&f.transport, "transport", "simulate this machine, by its profile: ranks that exchange messages over "+oneOfText(tunedTransports)+
		"; on hosts, over two of them, as in shm,tcp: within a host and between hosts")
}

// given reports whether a machine is simulated.
func (f *machineFlags) given(cmd *cobra.Command) bool {
	return f.named(cmd) || cmd.Flags().Changed("transport")
}

// named reports whether its profile is named.
func (f *machineFlags) named(cmd *cobra.Command) bool { return cmd.Flags().Changed("profile") }

// ruled are the flags whose place a profile takes. On hosts, it leaves the topology and the
// placement to theirs.
var ruled = []string{"ts", "tw", "th", "top", "ts-between", "tw-between", "ports", "switching", "congestion", "memory-bandwidth", "sync", "topology", "placement"}

// apply has a scenario simulated on the machine. Its model becomes the line on which its
// messages of m words are, so that the formula and the bounds can be compared.
func (f *machineFlags) apply(cmd *cobra.Command, e *scenario) error {
	hosts, _ := e.config.Topology.(*topo.Hosts)
	for _, name := range ruled {
		switch {
		case !cmd.Flags().Changed(name), hosts != nil && (name == "topology" || name == "placement"):
		case name == "topology":
			return fmt.Errorf("--topology and a machine's profile: the profile determines it: want hosts, such as hosts:4x8")
		default:
			return fmt.Errorf("--%s and a machine's profile: the profile determines it", name)
		}
	}
	if hosts == nil && f.transport.between != "" {
		return fmt.Errorf("--transport %s,%s on one host: want one transport, or --topology hosts:4x8, or other sizes", f.transport.value, f.transport.between)
	}
	p, err := f.read()
	if err != nil {
		return err
	}
	link, err := p.Link(f.transport.value)
	if err != nil {
		return err
	}
	e.config.Model = predict.TextbookModel(p, link, wordBytes, wordBytes*float64(e.m))
	e.transport, e.quiet = f.transport.value, link.Origin.Quiet && p.Node.Origin.Quiet
	if hosts == nil || hosts.Count() == 1 {
		e.config.Machine, err = predict.Machine(p, f.transport.value, wordBytes)
		return err
	}
	if link, err = linkBetween(p, f.transport.between); err != nil {
		return err
	}
	e.setBetween(predict.TextbookModel(p, link, wordBytes, wordBytes*float64(e.m)))
	e.transport, e.quiet = e.transport+" and, between hosts, "+link.Transport, e.quiet && link.Origin.Quiet
	e.config.Machine, err = predict.Hosts(p, f.transport.value, link, wordBytes, e.hostOf(hosts))
	return err
}

// prices returns those by which the formulas choose an algorithm for m words on the machine: the
// line on which its messages of m words are.
func (f *machineFlags) prices(m int) (model.Model, error) {
	p, err := f.read()
	if err != nil {
		return model.Model{}, err
	}
	link, err := p.Link(f.transport.value)
	if err != nil {
		return model.Model{}, err
	}
	return predict.TextbookModel(p, link, wordBytes, wordBytes*float64(m)), nil
}

// linkBetween returns the link between hosts: over a transport, or if that is "" the one that was
// measured between hosts, or TCP within a host, as if the network were as fast.
func linkBetween(p *model.Profile, transport string) (model.Link, error) {
	if transport == "" && len(p.HostLinks) > 0 {
		return p.Between()
	}
	return p.Link(cmp.Or(transport, "tcp"))
}

// hostOf returns a function that returns the host of a rank.
func (e *scenario) hostOf(hosts *topo.Hosts) func(rank int) int {
	at := e.config.Placement
	return func(rank int) int {
		if at != nil {
			rank = at[rank]
		}
		return hosts.Host(rank)
	}
}
