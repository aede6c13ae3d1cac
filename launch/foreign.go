package launch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/join"
)

// The variables that a user may set for a job of another launcher, beside those of
// package join. CHORALE_TOKEN is then any text.
const (
	envTokenFile = "CHORALE_TOKEN_FILE" // a file that holds the token, which others cannot read
	envInsecure  = "CHORALE_INSECURE"   // 1: a job without a secret, where nothing else gives it one
)

const (
	minToken = 16      // characters of a token: it is all that keeps others out
	maxToken = 4 << 10 // bytes

	// foreignStall is JobEnv.Stall in jobs of other launchers, as chorale run has it.
	foreignStall = 30 * time.Second
)

// A Foreign is what the environment says under another launcher than chorale run.
type Foreign struct {
	Place join.Place

	// SecretSource says where the job's secret comes from, after [Join].
	SecretSource string

	token    string // the user's; "" for none
	insecure bool
}

// Format implements [fmt.Formatter], and hides the token from all verbs.
func (f Foreign) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "{%s, secret from %q}", f.Place.Launcher, f.SecretSource)
}

// foreignJob returns the job in which another launcher, or none, has started this process.
func foreignJob(v *variables) (JobEnv, error) {
	place, err := join.Find(v.lookup)
	if err != nil {
		return JobEnv{}, err
	}
	if place.Size == 1 {
		return JobEnv{Launched: place.Launcher != join.None, Transport: "inproc", Size: 1, Foreign: &Foreign{Place: place}}, nil
	}
	f := &Foreign{Place: place}
	env := JobEnv{Launched: true, Foreign: f, Transport: "shm", Mixed: true, Rank: place.Rank, Size: place.Size, Stall: foreignStall}
	switch t, ok := v.lookup(envTransport); {
	case !ok || t == "auto":
	case t == "shm" || t == "tcp":
		env.Transport, env.Mixed = t, false
	case t == "inproc":
		v.fail("%s=inproc: %s has started %d processes, and goroutines of one process are one of them: want auto, shm or tcp", envTransport, place.Launcher, place.Size)
	default:
		v.fail("%s=%s: want auto, shm or tcp", envTransport, t)
	}
	f.readToken(v)
	v.user(&env)
	return env, v.err
}

// readToken reads the user's token, if there is one.
func (f *Foreign) readToken(v *variables) {
	insecure, _ := v.lookup(envInsecure)
	if f.insecure = insecure == "1"; insecure != "" && !f.insecure {
		v.fail("%s=%s: want 1, or the variable unset", envInsecure, insecure)
	}
	token, set := v.lookup(envToken)
	name, file := v.lookup(envTokenFile)
	switch {
	case set && file:
		v.fail("%s and %s are both set: want one of them", envToken, envTokenFile)
	case set:
		f.token, f.SecretSource = token, envToken
	case file:
		var err error
		if f.token, err = readTokenFile(name); err != nil {
			v.fail("%s: %w", envTokenFile, err)
		}
		f.SecretSource = envTokenFile + "=" + name
	default:
		return
	}
	if len(f.token) < minToken || len(f.token) > maxToken {
		v.fail("%s: the token has %d bytes: want %d or more, %d at most, as from openssl rand -hex 32", f.SecretSource, len(f.token), minToken, maxToken)
	}
}

// readTokenFile returns what a file holds, without the white space around it. Whoever is
// neither the file's owner nor in its group must not be able to read it.
func readTokenFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat() // of what is read, which the name may not mean any longer
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxToken {
		return "", fmt.Errorf("%s is not a file of %d bytes at most", name, maxToken)
	}
	if openToAll(info) {
		return "", fmt.Errorf("every user can read %s: chmod 600 it, or mount it with defaultMode 0400", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxToken+1)) // a longer token is refused
	return strings.TrimSpace(string(data)), err
}

// localSecret returns the secret of a job whose ranks are all on this host, and the name of
// the file that holds it. The first rank that asks makes the file; the directory is this
// user's alone. Other hosts may have the directory too, and other jobs there may meet at the
// same loopback address.
func localSecret(job string) (s proof.Secret, name string, err error) {
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if runtime == "" {
		if runtime, err = os.UserCacheDir(); err != nil {
			return s, "", fmt.Errorf("no directory for the secret of this job: %w", err)
		}
	}
	dir, err := ownDir(filepath.Join(runtime, "chorale"))
	if err != nil {
		return s, "", fmt.Errorf("no directory for the secret of this job: %w", err)
	}
	defer dir.Close()
	sum := sha256.Sum256([]byte(networkNamespace() + " " + job))
	file := "job-" + hex.EncodeToString(sum[:16])
	name = filepath.Join(dir.Name(), file)
	if err := offerSecret(dir, file); err != nil {
		return s, "", fmt.Errorf("the secret of this job: %w", err)
	}
	text, err := dir.ReadFile(file)
	if err == nil {
		s, err = proof.ParseSecret(string(text))
	}
	if err != nil {
		return s, "", fmt.Errorf("the secret of this job in %s: %w", name, err)
	}
	return s, name, nil
}

// ownDir opens a directory to which this user alone can write, and makes it if there is
// none. Its parent may be open to all, as /tmp: the directory that is checked is the one
// that is used, whatever becomes of its name.
func ownDir(name string) (*os.Root, error) {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat(".")
	if err == nil && othersWrite(info) {
		err = fmt.Errorf("other users can write to %s: want a directory of this user alone, with mode 0700", name)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// offerSecret writes a new secret to the file of that name, unless there is one. Others
// find the whole of it, or none.
func offerSecret(dir *os.Root, name string) error {
	new := "new-" + rand.Text()
	defer dir.Remove(new)
	if err := dir.WriteFile(new, []byte(proof.NewSecret().Reveal()), 0o600); err != nil {
		return err
	}
	if err := dir.Link(new, name); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
