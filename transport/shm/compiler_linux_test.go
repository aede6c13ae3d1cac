package shm

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// The plain stores of ordering_amd64.go are right as long as the compiler leaves them
// where they are. This test reads what it has made of this package, function by
// function, and follows every path through each:
//
//   - From a store that publishes a cell or releases one, no path leads to a store
//     that fills a cell, nor to a copy, before it comes to the next cell.
//   - Into a function that invalidates a cell, no path leads to such a store before it
//     comes to the invalidation.
func TestTheCompilerKeepsStoresBeforeTheirPublication(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("on %s a store that publishes is an atomic one, of which TestFences reads what the compiler makes", runtime.GOARCH)
	}
	listing, lines := compile(t, runtime.GOARCH), sourceLines(t)
	functions := parseListing(listing, lines)
	for _, f := range functions {
		for _, problem := range f.check() {
			t.Error(problem)
		}
	}

	// The test sees what it is about, and would notice it in another order.
	filled, invalidated := 0, 0
	for _, f := range functions {
		first, published := f.first(fills), f.last(publishes)
		if first >= 0 && published >= 0 {
			if f.code[first].op != "CALL" { // else it is a copy, into a cell or out of one
				filled++
			}
			if len(f.moved(published, first).check()) == 0 {
				t.Errorf("%s: a publication before everything else is not noticed", f.name)
			}
		}
		if i := f.first(invalidates); i >= 0 && first >= 0 {
			if published >= 0 { // of a cell, and not of the text of a call
				invalidated++
			}
			if len(f.moved(i, f.last(fills)+1).check()) == 0 {
				t.Errorf("%s: an invalidation after everything else is not noticed", f.name)
			}
		}
	}
	// The functions that fill a cell are writeInline, writeStaged, announce,
	// writeTagged, writeControl, writeFragment, sendMulticast and writePair.
	if filled < 8 || invalidated < 1 {
		t.Errorf("%d functions fill and publish a cell, %d invalidate one: want 8 and 1", filled, invalidated)
	}
}

func TestTheCheckOfTheCompilersOutputFindsStoresOutOfOrder(t *testing.T) {
	lines := lineRanges{
		"frame.go":          {{10, 19, fills}},
		"ordering_amd64.go": {{1, 3, publishes}, {4, 6, fills}},
		"link.go":           {{1, 1, begins}},
	}
	const (
		next       = "(/src/link.go:1)	LEAQ	64(AX), BX"
		fill       = "(/src/frame.go:12)	MOVQ	CX, 8(BX)"
		spill      = "(/src/frame.go:12)	MOVQ	CX, chorale/shm.size+8(SP)"
		load       = "(/src/frame.go:12)	MOVQ	8(BX), CX"
		compare    = "(/src/frame.go:12)	CMPQ	CX, 8(BX)"
		copies     = "(/src/frame.go:15)	CALL	runtime.memmove(SB)"
		writer     = "(/src/send.go:9)	CALL	chorale/shm.(*cell).setStaged(SB)"
		readers    = "(/src/ordering_amd64.go:5)	MOVQ	CX, 24(BX)"
		publish    = "(/src/ordering_amd64.go:2)	MOVL	DX, (BX)"
		publisher  = "(/src/send.go:9)	CALL	chorale/shm.(*link).publish(SB)"
		invalidate = "(/src/ordering_amd64.go:2)	MOVL	$0, (BX)"
		otherStore = "(/src/send.go:9)	MOVQ	CX, 8(R8)"
		back       = "(/src/send.go:9)	JMP	0"
		branch     = "(/src/send.go:9)	JEQ	2"
		ret        = "(/src/send.go:9)	RET"
	)
	for name, c := range map[string]struct {
		problems int
		code     []string
	}{
		"filled, then published":                     {0, []string{next, fill, copies, publish, ret}},
		"published, then filled":                     {1, []string{next, publish, fill, ret}},
		"published, then copied":                     {1, []string{next, fill, publish, copies, ret}},
		"published, then filled by a call":           {1, []string{next, publish, writer, ret}},
		"published by a call, then filled":           {1, []string{next, publisher, fill, ret}},
		"published, then given readers":              {1, []string{next, fill, publish, readers, ret}},
		"filled in a branch after the publication":   {1, []string{next, "(/src/send.go:9)	JMP	4", fill, ret, publish, branch, ret}},
		"a loop over cells":                          {0, []string{next, fill, publish, back}},
		"a loop over one cell":                       {1, []string{fill, publish, back}},
		"invalidated, then filled":                   {0, []string{next, invalidate, fill, readers, publish, ret}},
		"filled, then invalidated":                   {1, []string{next, fill, invalidate, readers, publish, ret}},
		"invalidated on one of two paths":            {1, []string{next, "(/src/send.go:9)	JNE	3", invalidate, fill, publish, ret}},
		"a spill after the publication":              {0, []string{next, fill, publish, spill, ret}},
		"a load after the publication":               {0, []string{next, fill, publish, load, compare, ret}},
		"a store elsewhere after the publication":    {0, []string{next, fill, publish, otherStore, ret}},
		"the rest of a function behind its return":   {0, []string{next, "(/src/send.go:9)	JNE	3", ret, fill, publish, ret}},
		"published twice, filled between without it": {1, []string{next, fill, publish, fill, publish, ret}},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("chorale/shm.f STEXT size=1\n\t0x0000 00000 (/src/send.go:8)\tTEXT\tchorale/shm.f(SB), ABIInternal, $0-0\n")
			for at, line := range c.code {
				fmt.Fprintf(&b, "\t%#04x %05d %s\n", at, at, line)
			}
			functions := parseListing([]byte(b.String()), lines)
			if len(functions) != 1 || len(functions[0].code) != len(c.code) {
				t.Fatalf("read %+v", functions)
			}
			if got := functions[0].check(); len(got) != c.problems {
				t.Errorf("found %q, want %d", got, c.problems)
			}
		})
	}
}

// compile returns what the compiler makes of this package for an architecture, without
// what tests ask for in GOFLAGS, as the race detector.
func compile(t *testing.T, arch string) []byte {
	gocmd, err := exec.LookPath("go")
	if err != nil {
		testenv.Skip(t, "no go command compiles this package: %v", err)
	}
	build := exec.Command(gocmd, "build", "-gcflags=-S", ".")
	build.Env = append(os.Environ(), "GOFLAGS=", "GOARCH="+arch)
	var listing bytes.Buffer
	build.Stderr = &listing
	if err := build.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, listing.Bytes())
	}
	return listing.Bytes()
}

// A role is what an instruction has to do with a cell.
type role uint8

const (
	other       role = iota
	fills            // a store that fills a cell, or a copy into or out of one
	publishes        // a store that publishes a cell, or releases one
	invalidates      // a store that takes a cell back
	begins           // it belongs to finding the next cell
)

// lineRanges says which lines of which file have which role.
type lineRanges map[string][]lineRange

type lineRange struct {
	from, to int
	role     role
}

func (r lineRanges) role(file string, line int) role {
	for _, x := range r[file] {
		if x.from <= line && line <= x.to {
			return x.role
		}
	}
	return other
}

// sourceLines finds the functions that have a role.
func sourceLines(t *testing.T) lineRanges {
	lines := lineRanges{}
	for file, roles := range map[string]map[string]role{
		"frame.go":          {"set": fills}, // those whose names begin so
		"ordering_amd64.go": {"storeRelease": publishes, "storeRelease64": fills},
		"ordering.go":       {"begin": begins},
		"link.go":           {"next": begins},
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			r := roles[fn.Name.Name]
			if strings.HasPrefix(fn.Name.Name, "set") {
				r = roles["set"]
			}
			if r != other {
				lines[file] = append(lines[file], lineRange{set.Position(fn.Pos()).Line, set.Position(fn.End()).Line, r})
			}
		}
		if len(lines[file]) < len(roles) {
			t.Fatalf("%s has not the functions %v", file, roles)
		}
	}
	return lines
}

// An instruction is one of a listing.
type instruction struct {
	at     int // its offset in the function
	op     string
	target int // of a jump; -1 if it is none
	role   role
}

// A compiled function is its instructions, in the order of their offsets.
type compiled struct {
	name string
	code []instruction
}

var (
	textLine        = regexp.MustCompile(`^(\S+) STEXT `)
	instructionLine = regexp.MustCompile(`^\t0x[0-9a-f]+ ([0-9]+) \((.*):([0-9]+)\)\t(\S+)(?:\t(.*))?$`)
	memoryOperand   = regexp.MustCompile(`^(-?[0-9]+)?(\([A-Z0-9]+\))+(\([A-Z0-9]+\*[0-9]\))?$`)
	callsWriter     = regexp.MustCompile(`\(\*cell\)\.set[A-Za-z]+\(SB\)$|^runtime\.(memmove|typedmemmove)\(SB\)$`)
	callsPublish    = regexp.MustCompile(`\(\*(link|cell|multicastWriter)\)\.publish\(SB\)$|\.storeRelease\(SB\)$|\.\(\*link\)\.take(Inline)?\(SB\)$`)
	callsBegin      = regexp.MustCompile(`\(\*(sendRing|link)\)\.next\(SB\)$`)
)

func parseListing(listing []byte, lines lineRanges) (functions []compiled) {
	for line := range strings.Lines(string(listing)) {
		line = strings.TrimSuffix(line, "\n")
		if m := textLine.FindStringSubmatch(line); m != nil {
			functions = append(functions, compiled{name: m[1]})
			continue
		}
		m := instructionLine.FindStringSubmatch(line)
		if m == nil || len(functions) == 0 {
			continue
		}
		op, operands := m[4], m[5]
		switch op {
		case "TEXT", "FUNCDATA", "PCDATA", "NOP":
			continue
		}
		at, _ := strconv.Atoi(m[1])
		source, _ := strconv.Atoi(m[3])
		i := instruction{at: at, op: op, target: -1}
		if strings.HasPrefix(op, "J") {
			if target, err := strconv.Atoi(operands); err == nil {
				i.target = target
			}
		}
		i.role = roleOf(op, operands, lines.role(m[2][strings.LastIndexByte(m[2], '/')+1:], source))
		f := &functions[len(functions)-1]
		f.code = append(f.code, i)
	}
	return functions
}

// roleOf returns the role of an instruction on a line with a role.
func roleOf(op, operands string, line role) role {
	if op == "CALL" {
		switch {
		case callsWriter.MatchString(operands):
			return fills
		case callsPublish.MatchString(operands):
			return publishes
		case callsBegin.MatchString(operands):
			return begins
		}
		return other
	}
	if line == begins || line == other {
		return line
	}
	all := strings.Split(operands, ", ")
	into := all[len(all)-1]
	switch {
	case strings.HasPrefix(op, "REP") || strings.HasPrefix(op, "DUFF"): // an inlined copy
		return line
	case strings.HasPrefix(op, "CMP") || strings.HasPrefix(op, "TEST") || strings.HasPrefix(op, "LEA"):
		return other
	case !memoryOperand.MatchString(into) || strings.Contains(into, "(SP)"):
		return other // it writes a register, or the stack
	case line == publishes && all[0] == "$0":
		return invalidates
	}
	return line
}

// check returns what is out of order.
func (f compiled) check() (problems []string) {
	for i := range f.code {
		if f.code[i].role != publishes {
			continue
		}
		for _, late := range f.reach(f.after(i), fills, begins) {
			problems = append(problems, fmt.Sprintf("%s: the store at +%d is behind the publication at +%d", f.name, f.code[late].at, f.code[i].at))
		}
	}
	if f.first(invalidates) >= 0 {
		for _, early := range f.reach([]int{0}, fills, invalidates) {
			problems = append(problems, fmt.Sprintf("%s: the store at +%d is before the invalidation", f.name, f.code[early].at))
		}
	}
	return problems
}

// reach returns the instructions with a role to which a path leads, up to those with
// another role. Of each path it returns the first.
func (f compiled) reach(from []int, want, end role) (found []int) {
	seen := make([]bool, len(f.code))
	for len(from) > 0 {
		i := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		switch f.code[i].role {
		case want:
			found = append(found, i)
		case end:
		default:
			from = append(from, f.after(i)...)
		}
	}
	return found
}

// after returns the instructions that may be executed next.
func (f compiled) after(i int) (next []int) {
	c := &f.code[i]
	if c.op != "RET" && c.op != "JMP" && c.op != "UNDEF" && i+1 < len(f.code) {
		next = append(next, i+1)
	}
	if c.target >= 0 {
		if j := slices.IndexFunc(f.code, func(c2 instruction) bool { return c2.at >= c.target }); j >= 0 {
			next = append(next, j)
		}
	}
	return next
}

func (f compiled) first(r role) int {
	return slices.IndexFunc(f.code, func(c instruction) bool { return c.role == r })
}

func (f compiled) last(r role) int {
	for i := len(f.code) - 1; i >= 0; i-- {
		if f.code[i].role == r {
			return i
		}
	}
	return -1
}

// moved returns the function with one instruction in another place: before the one
// that is at index to now.
func (f compiled) moved(from, to int) compiled {
	code := slices.Clone(f.code)
	c := code[from]
	if from < to {
		to--
	}
	code = slices.Insert(slices.Delete(code, from, from+1), to, c)
	code[to].at = f.code[min(to, len(f.code)-1)].at
	return compiled{f.name, code}
}
