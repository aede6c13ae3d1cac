package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/model"
)

// Variable names the file of the profile whose selections a job takes. If it is not set, or
// empty, that is the user's own profile, if there is one and it has selections; Off means
// none.
const (
	Variable = "CHORALE_MACHINE"
	Off      = "off"
)

// Path returns the user's own profile.
func Path() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "chorale", "profile.json"), nil
}

// Read reads a profile. An error names the file.
func Read(path string) (*model.Profile, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no profile %s: chorale tune makes one: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	p, err := model.ParseProfile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Selections are those that a job takes.
type Selections struct {
	List   []model.Selection // none: the built-in tables count
	File   string            // that has them, or from which there are none
	Reason string            // why there are none, unless there is no profile, or it has none
}

// Find returns the selections that a value of Variable stands for. It is an error if a file
// that is named has none. The user's own profile does not stand in the way of a job: what is
// wrong with it is the reason why there are none.
func Find(value string) (Selections, error) {
	if value == Off {
		return Selections{Reason: Variable + "=" + Off}, nil
	}
	if value != "" {
		list, err := Named(value)
		if err != nil {
			err = fmt.Errorf("%s=%s: %w", Variable, value, err)
		}
		return Selections{List: list, File: value}, err
	}
	path, err := Path()
	if err != nil {
		return Selections{}, nil // there is no user's own profile
	}
	s := Selections{File: path}
	p, err := Read(path)
	switch {
	case err == nil:
		s.List = p.Selections
	case !errors.Is(err, fs.ErrNotExist):
		s.Reason = err.Error()
	}
	return s, nil
}

// Named returns the selections of a file, which has to have some.
func Named(file string) ([]model.Selection, error) {
	p, err := Read(file)
	if err == nil && len(p.Selections) == 0 {
		err = fmt.Errorf("%s has no selections: chorale tune --select makes them", file)
	}
	if err != nil {
		return nil, err
	}
	return p.Selections, nil
}

// Of returns the selections for one transport, without what a job does not need.
func Of(list []model.Selection, transport string) (of []model.Selection) {
	for _, s := range list {
		if s.Transport == transport && len(s.Rules) > 0 {
			s.Origin = model.Origin{}
			of = append(of, s)
		}
	}
	return of
}

// Digest returns a short text that differs if two lists of selections may choose different
// algorithms. That of no rules is "".
func Digest(list []model.Selection) string {
	type rule struct {
		Transport, Collective, Algorithm string
		Processors, Ranks, From, To      int
	}
	var rules []rule
	for _, s := range list {
		for _, r := range s.Rules {
			rules = append(rules, rule{s.Transport, r.Collective, r.Algorithm, s.Processors, r.Ranks, r.From, r.To})
		}
	}
	if rules == nil {
		return ""
	}
	text, _ := json.Marshal(rules) // which has no value that cannot be marshaled
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// found has what this process has found already, by the value of Variable.
var found struct {
	mu   sync.Mutex
	list map[string]func() (*Selections, error)
}

// Once returns what Find has returned in the first call of this process for a value: always
// the same pointer. So a job of goroutines does not wait for a file each time.
func Once(value string) (*Selections, error) {
	found.mu.Lock()
	find := found.list[value]
	if find == nil {
		if found.list == nil {
			found.list = make(map[string]func() (*Selections, error))
		}
		find = sync.OnceValues(func() (*Selections, error) {
			s, err := Find(value)
			return &s, err
		})
		found.list[value] = find
	}
	found.mu.Unlock()
	return find()
}

// Absolute returns a value of Variable with the absolute name of its file.
func Absolute(value string) (string, error) {
	if value == "" || value == Off {
		return value, nil
	}
	return filepath.Abs(value)
}

// Count returns the number of rules.
func Count(list []model.Selection) (rules int) {
	for _, s := range list {
		rules += len(s.Rules)
	}
	return rules
}

// Lookup returns the value of Variable in an environment: the last one counts.
func Lookup(environ []string) string {
	for _, v := range slices.Backward(environ) {
		if len(v) > len(Variable) && v[:len(Variable)] == Variable && v[len(Variable)] == '=' {
			return v[len(Variable)+1:]
		}
	}
	return ""
}
