package stall

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/internal/callsite"
)

// module is the path of this module: frames of its packages below are the library's.
const module = "github.com/chorale-go/chorale"

// stacksMax bounds the text of all stacks, in bytes. What is behind it is not seen.
const stacksMax = 4 << 20

// A goroutine is one of this process.
type goroutine struct {
	id, parent int // parent: that has created it; 0 if it is not known
	state      string
	frames     []frame // the innermost first
}

// A frame is a call in the stack of a goroutine.
type frame struct {
	function string // with its package
	at       string // file:line
	first    uintptr
}

// goroutines returns all goroutines of this process.
func goroutines() []goroutine {
	for size := 64 << 10; ; size *= 4 {
		buf := make([]byte, min(size, stacksMax))
		if n := runtime.Stack(buf, true); n < len(buf) || len(buf) == stacksMax {
			return parseStacks(string(buf[:n]))
		}
	}
}

// parseStacks parses what runtime.Stack writes. It skips what it does not know.
func parseStacks(text string) (all []goroutine) {
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		var g goroutine
		head, ok := strings.CutPrefix(lines[0], "goroutine ")
		number, rest, _ := strings.Cut(head, " ")
		_, state, found := strings.Cut(rest, "[")
		if g.id, _ = strconv.Atoi(number); !ok || g.id == 0 || !found {
			continue
		}
		g.state, _, _ = strings.Cut(state, "]")
		g.state, _, _ = strings.Cut(g.state, ",") // behind it: for how long, and the thread
		for i := 1; i+1 < len(lines); i++ {
			location, ok := strings.CutPrefix(lines[i+1], "\t")
			if !ok {
				continue // frames are left out here
			}
			if creator, ok := strings.CutPrefix(lines[i], "created by "); ok {
				if _, parent, ok := strings.Cut(creator, " in goroutine "); ok {
					g.parent, _ = strconv.Atoi(parent)
				}
			} else {
				g.frames = append(g.frames, parseFrame(lines[i], location))
			}
			i++
		}
		all = append(all, g)
	}
	return all
}

func parseFrame(call, location string) frame {
	f := frame{function: call}
	if i := strings.LastIndexByte(call, '('); i > 0 {
		f.function = call[:i]
		first, _, _ := strings.Cut(strings.TrimSuffix(call[i+1:], ")"), ",")
		first = strings.TrimRight(strings.TrimPrefix(first, "{"), "?}")
		if address, err := strconv.ParseUint(first, 0, 64); err == nil {
			f.first = uintptr(address)
		}
	}
	f.at, _, _ = strings.Cut(location, " +0x")
	return f
}

// A kind says whose function a frame is of.
type kind int

const (
	programs kind = iota
	librarys
	standard
)

func (f *frame) kind() kind {
	switch pkg := f.pkg(); {
	case pkg == module:
		return librarys
	case strings.HasPrefix(pkg, module+"/"):
		first, _, _ := strings.Cut(pkg[len(module)+1:], "/")
		if first == "internal" || first == "transport" || first == "launch" {
			return librarys
		}
		return programs
	default:
		first, _, _ := strings.Cut(pkg, "/")
		if slices.Contains(standardRoots, first) || pkg == "" {
			return standard
		}
		return programs
	}
}

// pkg returns the path of the function's package; "" of a function of the language, as
// panic.
func (f *frame) pkg() string {
	slash := strings.LastIndexByte(f.function, '/') + 1
	dot := strings.IndexByte(f.function[slash:], '.')
	if dot < 0 {
		return ""
	}
	return f.function[:slash+dot]
}

// name returns the function without its package: "AllReduce", "(*Request).Wait".
func (f *frame) name() string {
	name := strings.TrimPrefix(strings.TrimPrefix(f.function, f.pkg()), ".")
	return strings.ReplaceAll(name, "[...]", "")
}

// standardRoots are the first elements of the paths of Go's own packages.
var standardRoots = []string{
	"archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto", "database", "debug", "embed",
	"encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter",
	"log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort",
	"strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode", "unique", "unsafe",
	"vendor", "weak",
}

// call returns the function of the library that the goroutine is in, as the program has
// called it, and where: name is "" if it is in none, and at is "" if it is not known.
func (g *goroutine) call() (name, at string) {
	for i := range g.frames {
		switch f := &g.frames[i]; f.kind() {
		case librarys:
			name = f.name()
		case programs:
			if name != "" {
				at = callsite.Shorten(f.at)
			}
			return name, at
		}
	}
	return name, ""
}

// isPrograms reports whether the goroutine runs a function of the program.
func (g *goroutine) isPrograms() bool {
	return slices.ContainsFunc(g.frames, func(f frame) bool { return f.kind() == programs })
}

// shows reports whether the stack shows an address as the first argument of a function of
// the library.
func (g *goroutine) shows(address uintptr) bool {
	return slices.ContainsFunc(g.frames, func(f frame) bool { return f.first == address && f.kind() == librarys })
}
