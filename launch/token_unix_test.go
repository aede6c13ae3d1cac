//go:build unix

package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/proof"
)

// secretIn has a rank look for the secret of a job in a runtime directory.
func secretIn(t *testing.T, runtime string) (proof.Secret, error) {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	s, _, err := localSecret("job")
	return s, err
}

// XDG_RUNTIME_DIR, or HOME, may be a directory that others may write to, as /tmp. Another
// user has been there first, and has made the directory and the secret of the next job.
func TestASecretThatAnotherUserHasLaidOutIsRefused(t *testing.T) {
	const nobody = 65534
	planted := proof.Secret{6, 6, 6}
	sum := sha256.Sum256([]byte(networkNamespace() + " job"))
	for what, plant := range map[string]func(t *testing.T, dir string) error{
		"a directory that all may write to": func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o777) },
		"one that its group may write to":   func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o770) },
		"a directory of another user":       func(_ *testing.T, dir string) error { return os.Chown(dir, nobody, -1) },
		"a link to such a directory": func(t *testing.T, dir string) error {
			theirs := filepath.Join(t.TempDir(), "theirs")
			if err := os.Rename(dir, theirs); err != nil {
				return err
			}
			if err := os.Chmod(theirs, 0o777); err != nil {
				return err
			}
			return os.Symlink(theirs, dir)
		},
	} {
		t.Run(what, func(t *testing.T) {
			runtime := t.TempDir()
			dir := filepath.Join(runtime, "chorale")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "job-"+hex.EncodeToString(sum[:16])), []byte(planted.Reveal()), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := plant(t, dir); err != nil {
				t.Skip(err) // only root gives files away
			}
			s, err := secretIn(t, runtime)
			if s == planted {
				t.Error("the rank takes the secret of another user")
			}
			if err == nil || !strings.Contains(err.Error(), "other users can write to "+dir+": want a directory of this user alone, with mode 0700") {
				t.Error(err)
			}
		})
	}
}

func TestRanksOfOneUserFindOneSecret(t *testing.T) {
	runtime := t.TempDir()
	first, err := secretIn(t, runtime)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := secretIn(t, runtime); again != first || err != nil {
		t.Errorf("another rank finds another secret, %v", err)
	}
	files, err := os.ReadDir(filepath.Join(runtime, "chorale"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the ranks leave %v, %v", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Mode() != 0o600 || strings.Contains(info.Name(), first.Reveal()[:8]) {
		t.Errorf("the secret is in %v with mode %v, %v", info.Name(), info.Mode(), err)
	}
}
