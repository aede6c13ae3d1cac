package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is what explains the files.
const page = "../docs/cluster.md"

func TestThePageHasEveryFileAndItsCommands(t *testing.T) {
	text := read(t, page)
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile(`\(\.\./deploy/([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		linked[m[1]] = true
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("%s links to %v", page, err)
		}
	}
	for _, pattern := range []string{"*/*.yaml", "slurm/*", "ssh/*", "Dockerfile"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if !linked[name] {
				t.Errorf("%s has no link to deploy/%s", page, name)
			}
		}
	}
	for _, want := range []string{
		"docker build -f deploy/Dockerfile -t " + image(t) + " .",
		"docker push " + image(t),
		createSecret.FindString(read(t, "kubernetes/job.yaml")),
		createSecret.FindString(read(t, "kubernetes/jobset.yaml")),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not have %q", page, want)
		}
	}
}
