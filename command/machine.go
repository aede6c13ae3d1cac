package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/predict"
)

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
	if e.config.Machine, err = predict.Machine(p, f.transport.value, wordBytes); err != nil {
		return err
	}
	link, err := p.Link(f.transport.value)
	if err != nil {
		return err
	}
	e.config.Model = predict.TextbookModel(p, link, wordBytes, wordBytes*float64(e.m))
	e.transport, e.quiet = f.transport.value, link.Origin.Quiet && p.Node.Origin.Quiet
	return nil
}
