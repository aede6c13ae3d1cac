package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/chorale-go/chorale"

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	rows := table(t)
	for _, p := range packages(t) {
		i := slices.IndexFunc(rows, func(r row) bool { return r.matches(short(p.ImportPath)) })
		if i < 0 {
			t.Errorf("package %s is not in %s", short(p.ImportPath), tableFile)
			continue
		}
		for _, path := range p.Imports {
			switch {
			case isOurs(path) && !slices.Contains(rows[i].imports, short(path)):
				t.Errorf("%s imports %s: %s allows %q", rows[i].path, short(path), tableFile, rows[i].imports)
			case !isOurs(path) && strings.Contains(path, ".") && !mayImport(rows[i], path):
				t.Errorf("%s imports %s: %s allows neither that module nor one above it", rows[i].path, path, tableFile)
			}
		}
	}
}

// The picture shows what is there. Linux has all of it.
func TestTheTableListsNoPackageAndNoArrowThatIsNotThere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("some imports are those of Linux alone")
	}
	all := packages(t)
	for _, r := range table(t) {
		var imports []string
		for _, p := range all {
			if r.matches(short(p.ImportPath)) {
				imports = append(imports, p.Imports...)
			}
		}
		if !slices.ContainsFunc(all, func(p listedPackage) bool { return r.matches(short(p.ImportPath)) }) {
			t.Errorf("%s lists %s, which does not exist", tableFile, r.path)
			continue
		}
		for _, path := range r.imports {
			if !slices.ContainsFunc(imports, func(i string) bool { return isOurs(i) && short(i) == path }) {
				t.Errorf("%s lets %s import %s, which it does not", tableFile, r.path, path)
			}
		}
	}
}

// short returns a package's path as the table has it.
func short(path string) string {
	if path == module {
		return "chorale"
	}
	return strings.TrimPrefix(path, module+"/")
}

func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func mayImport(r row, path string) bool {
	return slices.ContainsFunc(append([]string{"golang.org/x/sys"}, r.modules...), func(module string) bool {
		return path == module || strings.HasPrefix(path, module+"/")
	})
}

// listedPackage is one package in the output of go list. Imports excludes the
// imports of tests.
type listedPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []listedPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "mpi", "-json=ImportPath,Imports", module+"/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // or files that import C are left out
	out, err := cmd.Output()
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
