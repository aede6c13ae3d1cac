package selection

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// Environment names the variable that overrides the tables.
const Environment = "CHORALE_ALGORITHM"

// Override returns the list that overrides the tables, or "".
func Override() string { return os.Getenv(Environment) }

// An entry of a list forces an algorithm.
type entry struct {
	text        string             // as in the list
	spec        string             // the algorithm, as for algo.New
	collectives []sched.Collective // whose calls take it
}

// override returns the last entry of a list that is for a collective. See Choose.
func override(list string, c sched.Collective) (found entry, err error) {
	all, err := parse(list)
	if err != nil {
		return found, fmt.Errorf("%s=%s: %w", Environment, list, err)
	}
	for _, e := range all {
		if slices.Contains(e.collectives, c) {
			found = e
		}
	}
	return found, nil
}

// Validate returns an error if a list as in CHORALE_ALGORITHM names something that does
// not exist.
func Validate(list string) error {
	all, err := parse(list)
	if err != nil {
		return err
	}
	for _, e := range all {
		if algo.IsFile(e.spec) {
			if err := algo.Validate(e.collectives[0], e.spec); err != nil {
				return err
			}
		}
	}
	return nil
}

// parse returns the entries of a list. A file behind the name of a collective is not read.
func parse(list string) (all []entry, err error) {
	for _, text := range split(list) {
		e := entry{text: text, spec: text}
		collective, spec, named := strings.Cut(text, "=")
		if named && !strings.ContainsAny(collective, `,./\`) {
			c, err := sched.ParseCollective(collective)
			if err == nil && !algo.IsFile(spec) {
				err = algo.Validate(c, spec)
			}
			if err != nil {
				return nil, err
			}
			e.spec, e.collectives = spec, []sched.Collective{c}
		} else if e.collectives, err = takers(text); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// takers returns the collectives that have the algorithm that spec names, with its
// parameters. It is an error if there is none.
func takers(spec string) (all []sched.Collective, err error) {
	if algo.IsFile(spec) {
		s, err := algo.ReadFile(spec)
		if err != nil {
			return nil, err
		}
		return []sched.Collective{s.Collective}, nil
	}
	name, _, _ := strings.Cut(spec, ",")
	var known []string
	var refused error
	for _, a := range algo.Catalog() {
		known = append(known, a.Name)
		if a.Name != name {
			continue
		}
		if err := algo.Validate(a.Collective, spec); err == nil {
			all = append(all, a.Collective)
		} else if refused == nil || len(a.Params) > 0 {
			refused = err
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case refused != nil:
		return nil, refused
	}
	unknown := &sched.UnknownError{What: "algorithm", Name: name, Known: known}
	if near := unknown.Nearest(); near != "" {
		return nil, fmt.Errorf("no collective has an algorithm %q: want %s, or another of chorale list", name, near)
	}
	return nil, fmt.Errorf("no collective has an algorithm %q: see chorale list", name)
}

// Absolute returns a list with the absolute names of its files.
func Absolute(list string) (string, error) {
	all := split(list)
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

// split splits a list. A piece after a comma is a parameter of the entry before it unless
// it begins with the name of a collective, or with what is like one and no parameter.
func split(list string) []string {
	var all []string
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ';' || r == ' ' }) {
		for i, piece := range strings.Split(part, ",") {
			key, _, named := strings.Cut(piece, "=")
			if i > 0 && named && !collectiveLike(key) {
				all[len(all)-1] += "," + piece
			} else if piece != "" {
				all = append(all, piece)
			}
		}
	}
	return all
}

// collectiveLike reports whether a key is the name of a collective, or is like one and no
// parameter of an algorithm.
func collectiveLike(key string) bool {
	_, err := sched.ParseCollective(key)
	var unknown *sched.UnknownError
	if !errors.As(err, &unknown) {
		return true
	}
	return unknown.Nearest() != "" && !slices.ContainsFunc(algo.Catalog(), func(a algo.Algorithm) bool {
		return slices.ContainsFunc(a.Params, func(p algo.Param) bool { return p.Key == key })
	})
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
