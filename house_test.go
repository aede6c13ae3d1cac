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

// rooms says which of our packages each package may import. A package that is
// not listed may not exist.
var rooms = map[string][]string{
	"sched":                      {},
	"model":                      {},
	"topo":                       {},
	"transport":                  {},
	"internal/kernel":            {},
	"algo":                       {"sched", "model"},
	"transport/inproc":           {"transport"},
	"transport/internal/mailbox": {"transport"},
	"transport/internal/stage":   {"transport"}, // for tests alone
	"transport/mixed":            {"transport"},
	"transport/shm":              {"transport", "transport/internal/mailbox"},
	"transport/tcp":              {"transport", "transport/internal/mailbox"},
	"transport/transporttest":    {"transport"},
	"sim":                        {"sched", "topo", "model"},
	"draw":                       {"sched", "topo", "sim"},
	"exec":                       {"sched", "transport"},
	"launch":                     {"transport", "transport/inproc", "transport/mixed", "transport/shm", "transport/tcp"},
	"":                           {"algo", "exec", "internal/kernel", "launch", "sched", "transport", "transport/inproc"},
	"bench":                      {"", "sched"},
	"compare":                    {"bench", "launch"},
	"cmd/chorale":                {"", "algo", "bench", "draw", "launch", "model", "sched", "sim", "topo"},
	"docs/gallery":               {},
	"examples":                   {}, // tests alone
	"examples/balance":           {""},
	"examples/floyd":             {""},
	"examples/gauss":             {""},
	"examples/globalsum":         {""},
	"examples/globalsum/byhand":  {""},
	"examples/innerproduct":      {""},
	"examples/matvec":            {""},
	"examples/samplesort":        {""},
	"examples/training":          {""},
}

// guests says which modules of others a package may import. The library takes
// one, so that its users' go.sum stays small.
var guests = map[string][]string{
	"cmd/chorale":             {"github.com/spf13/cobra", "gonum.org/v1/gonum", "gonum.org/v1/plot"},
	"draw":                    {"gonum.org/v1/plot"},
	"transport/transporttest": {"go.uber.org/goleak"}, // imported by tests alone
}

func TestArrowsBetweenPackagesPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, ok := rooms[room]
		if !ok {
			t.Errorf("package %q is not in the design's table", room)
			continue
		}
		for _, path := range p.Imports {
			other, ours := strings.CutPrefix(path, module)
			other = strings.TrimPrefix(other, "/")
			switch {
			case ours && !slices.Contains(allowed, other):
				t.Errorf("%q imports %q: it may import %q", room, other, allowed)
			case !ours && strings.Contains(path, ".") && !mayImport(room, path):
				t.Errorf("%q imports %s, which is neither ours nor the standard library's", room, path)
			}
		}
	}
}

func mayImport(room, path string) bool {
	for _, guest := range append([]string{"golang.org/x/sys"}, guests[room]...) {
		if path == guest || strings.HasPrefix(path, guest+"/") {
			return true
		}
	}
	return false
}

// A listed is what go list says of a package. Imports leaves tests out.
type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
