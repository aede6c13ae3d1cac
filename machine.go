package chorale

import (
	"os"
	"sync"

	"github.com/chorale-go/chorale/internal/logging"
	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/selection"
)

// machines has the rules of each profile that this process has read.
var machines sync.Map // by *machine.Selections: *selection.Machine

// machineOfEnvironment returns the rules of the profile that the environment names, for a job
// whose ranks are goroutines: nil for the built-in tables. A process reads each file once.
func machineOfEnvironment() (*selection.Machine, error) {
	found, err := machine.Once(os.Getenv(machine.Variable))
	if err != nil {
		return nil, err
	}
	rules, known := machines.Load(found)
	if !known {
		fresh := selection.NewMachine(machine.Of(found.List, "inproc"))
		if rules, known = machines.LoadOrStore(found, fresh); !known && found.File != "" && found.Reason != "" {
			logging.Logger().Warn("the machine's profile is not used", "reason", found.Reason)
		}
	}
	return rules.(*selection.Machine), nil
}
