package command

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/selection"
	"github.com/chorale-go/chorale/model"
)

// A rulesFlag names the profile by whose selections jobs choose algorithms.
type rulesFlag struct{ file string }

// add adds the flag to a verb.
func (f *rulesFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "machine", "", "choose algorithms by the selections of the profile in `FILE`, as CHORALE_MACHINE; off: the built-in choices (default the user's own profile, if it has selections)")
}

// apply has this process, and those that it starts, choose so.
func (f *rulesFlag) apply() error {
	if f.file == "" {
		return nil
	}
	value, err := checkedMachine(f.file)
	if err != nil {
		return callErrorf("--machine %w", err)
	}
	return os.Setenv(machine.Variable, value)
}

// checkedMachine returns the value of CHORALE_MACHINE for a value of --machine: the absolute
// name of a file whose selections name what exists.
func checkedMachine(file string) (string, error) {
	if file == machine.Off {
		return file, nil
	}
	list, err := machine.Named(file)
	if err == nil {
		err = selection.ValidateMachine(list)
	}
	if err != nil {
		return "", err
	}
	return machine.Absolute(file)
}

// machineRules returns the rules by which a job on the machine of a profile chooses, or on this
// machine if the profile is nil; nil for the built-in tables.
func machineRules(of *model.Profile) (*selection.Machine, error) {
	if of != nil {
		return selection.NewMachine(of.Selections), selection.ValidateMachine(of.Selections)
	}
	found, err := machine.Find(os.Getenv(machine.Variable))
	if err != nil {
		return nil, err
	}
	return selection.NewMachine(found.List), nil
}
