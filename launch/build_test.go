package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPathIsADirectoryAndANameIsAnExecutable(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"dir/main.go": 0o666, "tool": 0o777, "text": 0o666, "bin/there": 0o777} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	for _, test := range []struct{ program, want, wrong string }{
		{"./dir", "./dir", ""},
		{"dir/", "dir/", ""},
		{".", ".", ""},
		{"..", "..", ""},
		{dir, dir, ""},
		{"./tool", filepath.Join(dir, "tool"), ""},
		{"there", filepath.Join(dir, "bin", "there"), ""},
		{"tool", "", "no program tool in PATH"},
		{"dir", "", "say ./dir"},
		{"./text", "", "is not executable"},
		{"./none", "", "no program ./none"},
		{"dir/main.go", "", "want the directory of its package, ./dir"},
		{"./dir/main.go", "", "want the directory of its package, ./dir"},
	} {
		got, isPackage, err := find(test.program)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v, want %s", test.program, err, test.wrong)
			}
		case err != nil || got != test.want || isPackage != (got == test.program):
			t.Errorf("%s: %s, a package: %v, %v; want %s", test.program, got, isPackage, err, test.want)
		}
	}
}
