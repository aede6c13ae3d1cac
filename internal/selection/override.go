package selection

import (
	"fmt"
	"os"
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
