package command

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sim"
)

// machineOf returns what a simulation needs of a profile: a transport, between ranks whose
// words are elements of some bytes. Times are in microseconds.
func machineOf(p *model.Profile, transport string, wordBytes int) (*sim.Machine, error) {
	link, err := p.Link(transport)
	if err != nil {
		return nil, err
	}
	bytes := float64(wordBytes)
	return &sim.Machine{
		Message: func(_, _, words int, exchange bool) float64 {
			if exchange {
				return link.Exchange.Time(bytes * float64(words))
			}
			return link.OneWay.Time(bytes * float64(words))
		},
		Combine:    func(words int) float64 { return p.Node.Combining(wordBytes, bytes*float64(words)) },
		Call:       link.Call.Value,
		Step:       link.Step.Value,
		Processors: p.Node.Processors,
		Switch:     link.Switch.Value,
		Memory:     p.Node.Bandwidth() / bytes,
		MemoryFrom: int(math.Ceil(float64(p.Node.MemoryFrom) / bytes)),
	}, nil
}

// machineFlags are the flags of the machine that is simulated in place of the textbook's.
type machineFlags struct {
	profile   string
	transport choice
}

// add adds the flags to a verb.
func (f *machineFlags) add(cmd *cobra.Command) {
	f.transport = choice{"shm", tunedTransports}
	addProfile(cmd, &f.profile)
	cmd.Flags().Var(&f.transport, "transport", "simulate this machine, by its profile: ranks that exchange messages over "+oneOfText(tunedTransports))
}

// given reports whether a machine is simulated.
func (f *machineFlags) given(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("profile") || cmd.Flags().Changed("transport")
}

// ruled are the flags whose place a profile takes.
var ruled = []string{"ts", "tw", "th", "top", "ports", "switching", "congestion", "memory-bandwidth", "sync", "topology", "placement"}

// apply has a scenario simulated on the machine. Its model becomes the line on which its
// messages of m words are, so that the formula and the bounds can be compared.
func (f *machineFlags) apply(cmd *cobra.Command, e *scenario) error {
	for _, name := range ruled {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s and a machine's profile: the profile determines it", name)
		}
	}
	p, err := readProfile(f.profile)
	if err != nil {
		return err
	}
	if e.config.Machine, err = machineOf(p, f.transport.value, wordBytes); err != nil {
		return err
	}
	link, err := p.Link(f.transport.value)
	if err != nil {
		return err
	}
	e.config.Model = textbookModel(p, link, wordBytes*float64(e.m))
	e.transport, e.quiet = f.transport.value, link.Origin.Quiet && p.Node.Origin.Quiet
	return nil
}

// textbookModel returns the prices by which a message of some bytes takes what it does on
// the machine: the line on which it is, in words.
func textbookModel(p *model.Profile, link model.Link, bytes float64) model.Model {
	tw := 0.0
	for _, piece := range link.OneWay {
		if float64(piece.From) <= bytes {
			tw = piece.PerByte.Value
		}
	}
	m := model.Model{Ts: max(0, link.Step.Value+link.OneWay.Time(bytes)-tw*bytes), Tw: tw * wordBytes}
	if bytes > 0 {
		m.Top = p.Node.Combining(wordBytes, bytes) / bytes * wordBytes
	}
	return m
}
