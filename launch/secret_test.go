package launch

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/proof"
)

// search looks for the secret of the job that it is in, where other users can see it:
// in arguments of processes and in names of files. It adds what it finds to a file.
// In a build, it runs its own arguments, as go build -toolexec wants it.
func search(args []string) error {
	secret, ok := os.LookupEnv(envToken)
	if !ok && len(args) > 0 { // a build does not know the secret
		return runTool(args)
	}
	if _, err := proof.ParseSecret(secret); err != nil {
		return err
	}
	found := []string{"searched with " + secret}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range commands {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(secret)) {
			found = append(found, fmt.Sprintf("found in the arguments %q", line))
		}
	}
	err = filepath.WalkDir(os.TempDir(), func(path string, _ fs.DirEntry, _ error) error {
		if strings.Contains(path, secret) {
			found = append(found, "found in the name "+path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(os.Getenv("FOUND"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(found, "\n"))
	return out.Close()
}

func runTool(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// A job of a package directory is searched for its secret while it is built, and while
// it runs.
func TestTheSecretIsNowhereToBeSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the arguments of processes are in /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, tmp := t.TempDir(), t.TempDir()
	found := filepath.Join(dir, "found")
	for name, text := range map[string]string{
		"go.mod": "module example.com/searching\n\ngo 1.26\n",
		"main.go": `package main

import (
	"os"
	"os/exec"
)

func main() {
	if err := exec.Command(os.Getenv("SEARCH"), "search").Run(); err != nil {
		println(err.Error())
		os.Exit(1)
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", tmp)
	t.Setenv("GOFLAGS", "'-toolexec="+self+" search'")
	t.Setenv("SEARCH", self)
	t.Setenv("FOUND", found)
	for _, transport := range []string{"auto", "tcp", "inproc", "on two hosts"} {
		os.Remove(found)
		var out, stderr lockedBuilder
		cfg := Config{
			Size: 2, Program: dir, Transport: transport, Stdout: &out, Stderr: &stderr, Verbose: true, Guard: []string{"guard"},
		}
		if transport == "on two hosts" {
			there, _ := onHosts(t, "a,b", "")
			cfg.Transport, cfg.Remote = "", there.Remote
			cfg.Remote.Env = []string{"SEARCH", "FOUND"}
		}
		err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%v\n%s%s", err, &out, &stderr)
		}
		text, err := os.ReadFile(found)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		secret := strings.TrimPrefix(lines[len(lines)-1], "searched with ")
		searches := 0
		for _, line := range lines {
			if strings.HasPrefix(line, "searched with ") {
				searches++
			} else {
				t.Errorf("%s: %s", transport, line)
			}
		}
		if searches < 2 && transport != "inproc" || searches < 1 {
			t.Errorf("%s: %d searches", transport, searches)
		}
		if all := out.String() + stderr.String(); strings.Contains(all, secret) || !strings.Contains(all, "process") {
			t.Errorf("%s: the secret is in what -v prints\n%s", transport, all)
		}
	}
}
