package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// find returns what to run: the path of an executable, or the directory of a Go package.
// The path is "" if the program is not copied to the hosts that run it.
func (c *Config) find() (path string, isPackage bool, err error) {
	r := c.Remote
	switch {
	case r == nil:
		return find(c.Program)
	case !isPath(c.Program):
		return "", false, nil
	case !r.NoCopy:
		return find(c.Program)
	}
	if _, isPackage, _ = find(c.Program); isPackage {
		return "", false, usagef("%s is a Go package: to run it without a copy, want an executable that every host has", c.Program)
	}
	c.Program, err = filepath.Abs(c.Program)
	return "", false, err
}

// isPath reports whether a program is named by a path, and not looked up in PATH.
func isPath(program string) bool {
	return strings.ContainsRune(filepath.ToSlash(program), '/') || program == "." || program == ".."
}

// find returns the path of an executable, or the directory of a Go package.
func find(program string) (path string, isPackage bool, err error) {
	isPath := isPath(program)
	info, statErr := os.Stat(program)
	isDir := statErr == nil && info.IsDir()
	switch {
	case isPath && isDir:
		return program, true, nil
	case isPath && statErr == nil && strings.HasSuffix(program, ".go"):
		return "", false, usagef("%s is a source file: want the directory of its package, %s", program, dirOf(program))
	}
	path, err = exec.LookPath(program)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		path, err = filepath.Abs(path)
		return path, false, err
	case isPath && statErr == nil:
		return "", false, usagef("%s is not executable: want an executable or the directory of a Go package", program)
	case isPath:
		return "", false, usagef("no program %s: want an executable or the directory of a Go package", program)
	case isDir:
		return "", false, usagef("no program %s in PATH: for the Go package in the directory of that name, say .%c%s", program, filepath.Separator, program)
	}
	return "", false, usagef("no program %s in PATH: want an executable or the directory of a Go package", program)
}

// dirOf returns the directory of a file in a form that find takes for a directory.
func dirOf(file string) string {
	dir := filepath.Dir(file)
	if strings.ContainsRune(filepath.ToSlash(dir), '/') || dir == "." || dir == ".." {
		return dir
	}
	return "." + string(filepath.Separator) + dir
}

// build builds the Go package in a directory, as part of that directory's own
// module, and returns the path of the executable.
func (j *job) build(ctx context.Context, dir string) (string, error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("building %s takes the go command: %w", dir, err)
	}
	tmp, err := j.guard.TempDir()
	if err != nil {
		return "", err
	}
	bin, work := filepath.Join(tmp, "bin"), filepath.Join(tmp, "work")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.Mkdir(work, 0o700)); err != nil {
		return "", err
	}
	cmd := exec.Command(goCommand, "build", "-o", bin+string(filepath.Separator), ".")
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(j.cfg.Env), "GOTMPDIR="+work, j.guard.Mark()) // so that intermediate files are removed too
	p := &process{rank: -1, name: "go build " + dir, cmd: cmd}
	if err := j.start(p, j.forward("", false)); err != nil {
		return "", err
	}
	err = j.supervise(p).wait(ctx)
	var failed *EndError
	switch {
	case errors.As(err, &failed):
		return "", fmt.Errorf("%s: %w", dir, ErrBuild)
	case err != nil:
		return "", err
	}
	built, err := os.ReadDir(bin)
	if err != nil || len(built) != 1 {
		return "", fmt.Errorf("%s: go build has made %d executables: %w", dir, len(built), ErrBuild)
	}
	return filepath.Join(bin, built[0].Name()), nil
}
