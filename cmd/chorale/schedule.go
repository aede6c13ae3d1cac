package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/sched"
)

// collectiveOrFile resolves the argument of show, check or sim: the name of a
// collective, or a file with a schedule. Its errors are ready to be returned by a
// verb.
func collectiveOrFile(arg string) (c sched.Collective, s *sched.Schedule, err error) {
	c, unknown := sched.ParseCollective(arg)
	if unknown == nil {
		return c, nil, nil
	}
	data, err := os.ReadFile(arg)
	if os.IsNotExist(err) {
		return 0, nil, callErrorf("%s is neither a file nor a collective: %w", arg, unknown)
	}
	if err != nil {
		return 0, nil, callError{err}
	}
	s, err = sched.Parse(data)
	if err != nil {
		return 0, nil, callErrorf("%s: %w", arg, err)
	}
	return 0, s, nil
}

// noneOf returns an error if one of the flags is set, which have no meaning for a
// schedule from a file.
func noneOf(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return callErrorf("--%s with a file: the file determines it", name)
		}
	}
	return nil
}
