package algo

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// maxFile bounds the bytes of a file with a schedule: what parses to DefaultMemory.
const maxFile = sched.DefaultMemory / 64

// IsFile reports whether spec names a file with a schedule: it has a dot or a path
// separator in it before any comma, which no name of an algorithm has.
func IsFile(spec string) bool {
	name, _, _ := strings.Cut(spec, ",")
	return strings.ContainsAny(name, `./\`)
}

// ReadFile reads the schedule in a file, in either form, and checks it. A schedule without
// a name gets that of the file.
func ReadFile(name string) (*sched.Schedule, error) {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("algo: there is no file %s", name)
	}
	if err != nil {
		return nil, fmt.Errorf("algo: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("more than %d bytes", maxFile)
	}
	var s *sched.Schedule
	if err == nil {
		s, err = sched.Parse(data)
	}
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("algo: %s: %w", name, err)
	}
	if s.Algorithm == "" {
		s.Algorithm = strings.Join(strings.Fields(filepath.Base(name)), "-")
	}
	return s, nil
}

// fromFile returns the schedule in a file if it is for the call.
func fromFile(c sched.Collective, name string, p, root int) (*sched.Schedule, error) {
	s, err := ReadFile(name)
	if err == nil && (s.Collective != c || s.P != p || s.Root != root) {
		err = fmt.Errorf("algo: %s is for %s: want a file for %s", name, callText(s.Collective, s.P, s.Root), callText(c, p, root))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// callText names a call, as in "bcast on 4 ranks from root 1".
func callText(c sched.Collective, p, root int) string {
	text := fmt.Sprintf("%v on %d ranks", c, p)
	switch {
	case c.Rooted():
		text += fmt.Sprintf(" with root %d", root)
	case c == sched.Shift:
		text += fmt.Sprintf(" by %d", root)
	}
	return text
}
