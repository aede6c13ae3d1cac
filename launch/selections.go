package launch

import (
	"encoding/json"
	"fmt"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/launch/internal/control"
)

// findSelections finds the selections for the calls of ranks that share a host, in a job that
// another launcher has started.
func (e *JobEnv) findSelections(value string) error {
	found, err := machine.Find(value)
	if err == nil {
		e.Selections, e.SelectionsReason = machine.Of(found.List, e.Transport), found.Reason
	}
	return err
}

// takeSelections keeps those for the processors that the ranks share, as the answer to a rank
// that joins says: of its own, or of the launcher's.
func (e *JobEnv) takeSelections(joined control.JoinedMessage) {
	if e.Foreign == nil {
		e.Selections, e.SelectionsReason = machine.Of(joined.Selections, e.Transport), joined.Unselected
	}
	if joined.SelectionsDiffer != "" {
		e.Selections, e.SelectionsReason = nil, joined.SelectionsDiffer
	}
	if len(e.Selections) > 0 && e.Selections[0].Processors != e.Processors {
		e.SelectionsReason = fmt.Sprintf("the machine's profile is for %d processors, and the ranks of a host share %d", e.Selections[0].Processors, e.Processors)
		e.Selections = nil
	}
}

// findSelections finds those of a job of this launcher, which puts them into the answer that
// its ranks get when they join. So all of them choose alike, also ranks that come later. The
// process of an inproc job reads the file itself.
func (c *Config) findSelections() error {
	value := machine.Lookup(c.Env)
	found, err := machine.Find(value)
	if err != nil {
		return usageError{err}
	}
	if value, err = machine.Absolute(value); err != nil {
		return err
	}
	if value != "" {
		c.Env = append(c.Env, machine.Variable+"="+value)
	}
	transports := []string{c.Transport}
	if c.Transport == "auto" {
		transports = []string{"shm", "tcp"}
	}
	c.answer.Unselected = found.Reason
	for _, t := range transports {
		c.answer.Selections = append(c.answer.Selections, machine.Of(found.List, t)...)
	}
	text, err := json.Marshal(c.answer.Selections)
	if err != nil {
		return err
	}
	if len(text) > control.MaxSelections {
		return usagef("%s has selections of %d bytes: want at most %d, or %s=%s", found.File, len(text), control.MaxSelections, machine.Variable, machine.Off)
	}
	return nil
}

// unselected is what rank 0 prints where ranks have found different selections.
func unselected(why string) string {
	return fmt.Sprintf("%s%s; all take the built-in choices: want the same file on all hosts, or %s=%s", linePrefix, why, machine.Variable, machine.Off)
}
