package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/chorale-go/chorale/internal/kernel"
)

// version returns what --version prints: what this command was built from, by what, and
// the instructions that it combines vectors with.
func version() string {
	module, commit := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			module = info.Main.Version
		}
		commit = commitOf(info.Settings)
	}
	return fmt.Sprintf("chorale %s\ncommit %s\n%s %s/%s\nkernels %s",
		module, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, kernel.Instructions())
}

// commitOf returns the commit that the go command has recorded, and whether files differed
// from it. It records none outside of a repository, or in a test.
func commitOf(settings []debug.BuildSetting) string {
	commit, modified := "unknown", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	return commit + modified
}
