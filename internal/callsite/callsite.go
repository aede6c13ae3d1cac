// Package callsite finds the line of a program that has called the library. Looking it up
// takes some microseconds, so it is for calls that fail, or that have waited for long, and
// for those that a profile has not seen before.
package callsite

import (
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Line returns the innermost line of the goroutine's stack that is neither in the library
// nor in Go's own packages, as in "train/main.go:41": the file with its folder, and the
// line. It returns "" where there is none, as in a goroutine of the library's own.
func Line() string {
	file, line := Find(2)
	if file == "" {
		return ""
	}
	return file + ":" + strconv.Itoa(line)
}

// Find is [Line], in two parts and without so many of the innermost frames: with 0, it
// begins at Find itself. It returns "" and 0 where there is none.
func Find(skip int) (file string, line int) {
	var pcs [16]uintptr
	for skip++; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return "", 0
		}
		if file, line = Of(pcs[:n]); file != "" {
			return file, line
		}
	}
}

// Of is [Find] among the return addresses that [runtime.Callers] has found.
func Of(pcs []uintptr) (file string, line int) {
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if f.Function != "" && !inLibrary(f.File) && !inStandard(f.Function, f.File) {
			return Shorten(f.File), f.Line
		}
		if !more {
			return "", 0
		}
	}
}

// Shorten returns a file, or a line of one, with the last folder of its path alone.
func Shorten(file string) string {
	dir, name := path.Split(slashes(file))
	return path.Join(path.Base(dir), name)
}

// root returns the folder of the library's files, as the compiler has noted it.
var root = sync.OnceValue(func() string {
	_, here, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(slashes(here), "internal/callsite/callsite.go")
})

func slashes(file string) string { return strings.ReplaceAll(file, `\`, "/") }

// folders are those of the library beside its root. The others are for programs.
var folders = []string{"internal/", "launch/", "transport/"}

// inLibrary reports whether a file belongs to the library. Its tests do not. The name of a
// function does not tell: a function of the library's that is inlined, or made for a type
// of the program's, has one of the program's package.
func inLibrary(file string) bool {
	below, ours := strings.CutPrefix(slashes(file), root())
	if !ours || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(below, "internal/bench/") {
		return false
	}
	return !strings.Contains(below, "/") ||
		slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(below, folder) })
}

// standard returns the folder of Go's own packages, or "" if the compiler has noted none
// (-trimpath).
var standard = sync.OnceValue(func() string {
	f := runtime.FuncForPC(reflect.ValueOf(strings.Cut).Pointer())
	file, _ := f.FileLine(f.Entry())
	dir, ok := strings.CutSuffix(slashes(file), "strings/strings.go")
	if !ok {
		return ""
	}
	return dir
})

// inStandard reports whether a function is one of Go's own packages: what begins a
// goroutine, what panics, or what calls a function of the library's.
func inStandard(function, file string) bool {
	if dir := standard(); dir != "" {
		return strings.HasPrefix(slashes(file), dir)
	}
	for _, p := range []string{"runtime.", "internal/", "sync.", "context.", "testing."} {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return false
}
