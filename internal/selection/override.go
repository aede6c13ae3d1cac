package selection

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// environment names the variable that overrides the tables.
const environment = "CHORALE_ALGORITHM"

// Override returns the list that overrides the tables, or "".
func Override() string { return os.Getenv(environment) }

// override returns the algorithm that a list gives a collective, or nothing. See
// Choose.
func override(list string, c sched.Collective) (string, error) {
	found := ""
	for _, entry := range entries(list) {
		collective, spec, named := strings.Cut(entry, "=")
		if of, err := sched.ParseCollective(collective); named && err == nil {
			if of == c {
				found = spec
			}
			continue
		}
		if algo.IsFile(entry) {
			s, err := algo.ReadFile(entry)
			if err != nil {
				return "", fmt.Errorf("%s=%s: %w", environment, list, err)
			}
			if s.Collective == c {
				found = entry
			}
			continue
		}
		name, _, _ := strings.Cut(entry, ",")
		if !slices.ContainsFunc(algo.Catalog(), func(a algo.Algorithm) bool { return a.Name == name }) {
			return "", fmt.Errorf("%s=%s: %q is neither COLLECTIVE=ALGORITHM nor an algorithm: %v has %s",
				environment, list, entry, c, strings.Join(Algorithms(c), ", "))
		}
		if slices.Contains(Algorithms(c), name) {
			found = entry
		}
	}
	return found, nil
}

// Validate returns an error if a list as in CHORALE_ALGORITHM names something that does
// not exist.
func Validate(list string) error {
	for _, entry := range entries(list) {
		collective, spec, named := strings.Cut(entry, "=")
		if c, err := sched.ParseCollective(collective); named && err == nil {
			if err := algo.Validate(c, spec); err != nil {
				return err
			}
			continue
		}
		if err := validateForSome(entry); err != nil {
			return err
		}
	}
	return nil
}

// Absolute returns a list with the absolute names of its files.
func Absolute(list string) (string, error) {
	all := entries(list)
	for i, entry := range all {
		collective, spec, named := strings.Cut(entry, "=")
		if !named {
			collective, spec = "", entry
		}
		if !algo.IsFile(spec) {
			continue
		}
		path, err := filepath.Abs(spec)
		if err != nil {
			return "", err
		}
		if strings.ContainsAny(path, ";, =") {
			return "", fmt.Errorf("%s: want a path without spaces, commas, semicolons and =", path)
		}
		if named {
			path = collective + "=" + path
		}
		all[i] = path
	}
	return strings.Join(all, ";"), nil
}

// validateForSome returns an error unless some collective has the algorithm that spec
// names.
func validateForSome(spec string) error {
	if algo.IsFile(spec) {
		_, err := algo.ReadFile(spec)
		return err
	}
	name, _, _ := strings.Cut(spec, ",")
	var known []string
	for _, a := range algo.Catalog() {
		if a.Name == name {
			return algo.Validate(a.Collective, spec)
		}
		known = append(known, a.Name)
	}
	unknown := &sched.UnknownError{What: "algorithm", Name: name, Known: known}
	if near := unknown.Nearest(); near != "" {
		return fmt.Errorf("no collective has an algorithm %q: want %s, or another of chorale list", name, near)
	}
	return fmt.Errorf("no collective has an algorithm %q: see chorale list", name)
}

// entries splits a list. A piece after a comma is a parameter of the entry before
// it unless it begins with the name of a collective.
func entries(list string) []string {
	var all []string
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' || r == ' ' }) {
		for i, piece := range strings.Split(part, ",") {
			key, _, named := strings.Cut(piece, "=")
			_, err := sched.ParseCollective(key)
			if i > 0 && named && err != nil {
				all[len(all)-1] += "," + piece
			} else if piece != "" {
				all = append(all, piece)
			}
		}
	}
	return all
}

// Algorithms returns the names of the algorithms of a collective, in the order of
// the catalog.
func Algorithms(c sched.Collective) []string {
	var names []string
	for _, a := range algo.For(c) {
		names = append(names, a.Name)
	}
	return names
}
