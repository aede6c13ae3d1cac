package command

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/chorale-go/chorale/internal/kernel"
)

// version returns what --version prints: what this command was built from, by what, and
// the instructions that it combines vectors with.
func version() string {
	version, commit := "chorale unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, commit = versionOf(info), commitOf(info.Settings)
	}
	return fmt.Sprintf("%s\ncommit %s\n%s %s/%s\nkernels %s",
		version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, kernel.Instructions())
}

// module is the path of chorale's module.
const module = "github.com/chorale-go/chorale"

// versionOf returns chorale's version, and before it, in a line, the main package's module
// and its version where that is another module.
func versionOf(info *debug.BuildInfo) string {
	known := func(m debug.Module) string { return cmp.Or(m.Version, "unknown") }
	if info.Main.Path == module || info.Main.Path == "" {
		return "chorale " + known(info.Main)
	}
	chorale := debug.Module{}
	for _, m := range info.Deps {
		if m.Path != module {
			continue
		}
		if chorale = *m; m.Replace != nil {
			chorale.Version = cmp.Or(m.Replace.Version, "of "+m.Replace.Path)
		}
	}
	return info.Main.Path + " " + known(info.Main) + "\nchorale " + known(chorale)
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
