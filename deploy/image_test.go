package deploy

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// image returns the name of the image in the Dockerfile's comment.
func image(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`docker build -f deploy/Dockerfile -t (\S+) \.\n`).FindStringSubmatch(read(t, "Dockerfile"))
	if m == nil {
		t.Fatal("the Dockerfile does not say how to build the image")
	}
	return m[1]
}

func TestTheImageIsBuiltWithTheGoOfTheModule(t *testing.T) {
	base := regexp.MustCompile(`(?m)^FROM golang:(\S+) AS build$`).FindStringSubmatch(read(t, "Dockerfile"))
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if base == nil || version == nil || base[1] != version[1] {
		t.Errorf("the image is built with %q, and go.mod has %q", base, version)
	}
}

// build runs the Dockerfile's commands that build binaries, and returns the directory that
// stands for the root of the first stage.
func build(t *testing.T) string {
	t.Helper()
	text := read(t, "Dockerfile")
	commands := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*)$`).FindAllStringSubmatch(text, -1)
	program := regexp.MustCompile(`(?m)^ARG (PROGRAM=\S+)$`).FindStringSubmatch(text)
	if len(commands) != 2 || program == nil {
		t.Fatalf("the Dockerfile builds %q, with %q", commands, program)
	}
	root := t.TempDir()
	for _, command := range commands {
		c := exec.Command("sh", "-c", strings.Replace(command[1], " /out/", " "+root+"/out/", 1))
		c.Dir, c.Env = "..", append(os.Environ(), program[1], "GOOS=linux")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[1], err, out)
		}
	}
	return root
}

// A binary that asks for an interpreter does not run in an image that has none.
func TestTheImageHasStaticBinariesAndRunsAJob(t *testing.T) {
	root := build(t)
	for _, name := range []string{"program", "chorale"} {
		f, err := elf.Open(filepath.Join(root, "out", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s is linked dynamically", name)
			}
		}
	}
	t.Run("as an image", func(t *testing.T) { runImage(t, root) })
}

// runImage builds the last stage, which needs no registry, out of what the first one makes.
func runImage(t *testing.T, root string) {
	if runtime.GOOS != "linux" {
		t.Skip("containers are those of Linux")
	}
	buildah := builder(t)
	buildah("build", "--isolation", "chroot", "--file", "Dockerfile", "--build-context", "build="+root, "--tag", image(t), t.TempDir())
	container := buildah("from", "--pull-never", image(t))
	if user := buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}", image(t)); user != "65532:65532 [/program]" {
		t.Errorf("the image is run as %s", user)
	}
	if out := buildah("run", "--isolation", "chroot", container, "--", "/program"); !strings.Contains(out, "sum 0 on rank 0") {
		t.Errorf("one rank says %s", out)
	}
	out := buildah("run", "--isolation", "chroot", container, "--", "/chorale", "run", "-n", "4", "/program")
	if !strings.Contains(out, "[3] allreduce butterfly: sum 6 on rank 3") {
		t.Errorf("four ranks say %s", out)
	}
}

// builder returns what runs buildah with a storage of its own.
func builder(t *testing.T) func(args ...string) string {
	t.Helper()
	path, err := exec.LookPath("buildah")
	if err != nil {
		testenv.Skip(t, "there is no buildah to build the image with: %v", err)
	}
	if os.Geteuid() != 0 {
		testenv.Skip(t, "this user is not root, as buildah's isolation chroot wants it")
	}
	dir := t.TempDir()
	storage := []string{"--storage-driver", "vfs", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run")}
	buildah := func(args ...string) string {
		t.Helper()
		var failed strings.Builder
		c := exec.Command(path, append(storage[:len(storage):len(storage)], args...)...)
		c.Stderr = &failed
		out, err := c.Output()
		if err != nil {
			t.Fatalf("buildah %s: %v\n%s%s", strings.Join(args, " "), err, out, failed.String())
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() {
		buildah("rm", "--all")
		buildah("rmi", "--all", "--force")
	})
	return buildah
}
