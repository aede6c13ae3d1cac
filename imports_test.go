package chorale_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/chorale-go/chorale"

// allowedImports lists, for each package of this module, the packages of this
// module that it may import. A package that is not listed may not exist.
var allowedImports = map[string][]string{
	"sched":                       {},
	"model":                       {},
	"topo":                        {},
	"transport":                   {},
	"internal/kernel":             {},
	"algo":                        {"sched", "model"},
	"transport/inproc":            {"transport", "transport/internal/match"},
	"transport/internal/match":    {"transport"},
	"transport/internal/progress": {"transport", "transport/internal/match"},
	"transport/internal/cluster":  {"transport"}, // for tests alone
	"transport/mixed":             {"transport"},
	"transport/shm":               {"transport", "transport/internal/match", "transport/internal/progress"},
	"transport/tcp":               {"transport", "transport/internal/match", "transport/internal/progress"},
	"transport/transporttest":     {"transport", "transport/internal/cluster"},
	"sim":                         {"sched", "topo", "model"},
	"draw":                        {"sched", "topo", "sim"},
	"internal/exec":               {"sched", "transport"},
	"internal/selection":          {"algo", "sched"},
	"launch":                      {"transport", "transport/inproc", "transport/mixed", "transport/shm", "transport/tcp"},
	"":                            {"algo", "internal/exec", "internal/kernel", "internal/selection", "launch", "sched", "transport", "transport/inproc"},
	"internal/bench":              {"", "sched"},
	"internal/testenv":            {}, // for tests alone
	"compare":                     {"internal/bench", "launch"},
	"cmd/chorale":                 {"", "algo", "internal/bench", "internal/selection", "draw", "launch", "model", "sched", "sim", "topo"},
	"docs/gallery":                {},
	"examples":                    {}, // tests alone
	"examples/balance":            {""},
	"examples/floyd":              {""},
	"examples/gauss":              {""},
	"examples/globalsum":          {""},
	"examples/globalsum/byhand":   {""},
	"examples/innerproduct":       {""},
	"examples/matvec":             {""},
	"examples/samplesort":         {""},
	"examples/training":           {""},
}

// allowedModules lists the foreign modules that a package may import. Every
// package may import golang.org/x/sys; the library imports nothing else, so that
// an importer's go.sum stays small.
var allowedModules = map[string][]string{
	"cmd/chorale":             {"github.com/spf13/cobra", "gonum.org/v1/gonum", "gonum.org/v1/plot"},
	"draw":                    {"gonum.org/v1/plot"},
	"transport/transporttest": {"go.uber.org/goleak"}, // imported by tests alone
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, ok := allowedImports[name]
		if !ok {
			t.Errorf("package %q is not in the design's table", name)
			continue
		}
		for _, path := range p.Imports {
			other, ours := strings.CutPrefix(path, module)
			other = strings.TrimPrefix(other, "/")
			switch {
			case ours && !slices.Contains(allowed, other):
				t.Errorf("%q imports %q: it may import %q", name, other, allowed)
			case !ours && strings.Contains(path, ".") && !mayImport(name, path):
				t.Errorf("%q imports %s, which is neither ours nor the standard library's", name, path)
			}
		}
	}
}

func mayImport(name, path string) bool {
	for _, module := range append([]string{"golang.org/x/sys"}, allowedModules[name]...) {
		if path == module || strings.HasPrefix(path, module+"/") {
			return true
		}
	}
	return false
}

// listedPackage is one package in the output of go list. Imports excludes the
// imports of tests.
type listedPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []listedPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
