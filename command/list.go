package command

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

func newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [OP]",
		Short: "List the algorithms: parameters, restrictions, cost",
		Long: `List all algorithms, or those of a collective with their costs, restrictions and
parameters.

The cost is for one port, that is, one send and one receive at a time. α is the
start-up time of a message, β the time per word, γ the time per word combined; n
is the words of the whole vector, p the number of ranks, lg the logarithm to
base 2.

A parameter is shown with its default, and written behind the algorithm's name,
as in binomial,order=ascending.

--format json prints one value, of the shape that docs/json.md gives.`,
		Example: `  chorale list
  chorale list allreduce`,
		Args: cobra.MaximumNArgs(1),
	}
	format := addFormat(cmd, "table", "csv", "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		algorithms, print := algo.Catalog(), listAll
		if len(args) == 1 {
			c, err := sched.ParseCollective(args[0])
			if err != nil {
				return callError{err}
			}
			algorithms, print = algo.For(c), listOne
		}
		switch format.value {
		case "csv":
			print = listCSV
		case "json":
			print = listJSON
		}
		return print(cmd.OutOrStdout(), algorithms)
	}
	return cmd
}

// listing is the JSON form of list's output.
type listing struct {
	Algorithms []listedAlgorithm `json:"algorithms"`
}

type listedAlgorithm struct {
	Collective   string            `json:"collective"`
	Algorithm    string            `json:"algorithm"`
	Parameters   []listedParameter `json:"parameters"`
	Restrictions []string          `json:"restrictions"`
	Cost         string            `json:"cost"`
	Prefer       string            `json:"prefer"`
}

type listedParameter struct {
	Key     string `json:"key"`
	Default string `json:"default"`
	Values  string `json:"values"`
	Doc     string `json:"doc"`
}

func (p listedParameter) String() string { return p.Key + "=" + p.Default }

func listCSV(w io.Writer, algorithms []algo.Algorithm) error {
	return printCSV(w, newListing(algorithms).Algorithms)
}

func listJSON(w io.Writer, algorithms []algo.Algorithm) error {
	return printJSON(w, newListing(algorithms))
}

func newListing(algorithms []algo.Algorithm) listing {
	l := listing{Algorithms: []listedAlgorithm{}}
	for _, a := range algorithms {
		params := []listedParameter{}
		for _, p := range a.Params {
			params = append(params, listedParameter{p.Key, p.Default, p.Values, p.Doc})
		}
		l.Algorithms = append(l.Algorithms, listedAlgorithm{
			Collective: a.Collective.String(), Algorithm: a.Name, Parameters: params,
			Restrictions: restrictions(a), Cost: a.Formula, Prefer: a.Prefer,
		})
	}
	return l
}

func restrictions(a algo.Algorithm) []string {
	if a.Restrictions.String() == "" {
		return []string{}
	}
	return strings.Split(a.Restrictions.String(), ", ")
}

// listAll prints a line or two for each algorithm.
func listAll(w io.Writer, algorithms []algo.Algorithm) error {
	lines := [][]string{{"COLLECTIVE", "ALGORITHM", "PREFER IT FOR"}}
	for _, a := range algorithms {
		lines = append(lines, []string{a.Collective.String(), a.Name, a.Prefer})
	}
	return printTable(w, lines)
}

// listOne prints the full catalog entries of a collective's algorithms.
func listOne(w io.Writer, algorithms []algo.Algorithm) error {
	for _, a := range algorithms {
		lines := [][]string{{a.Name}}
		for i, term := range strings.Split(a.Formula, "; ") {
			lines = append(lines, []string{[]string{"  cost", ""}[min(i, 1)], term})
		}
		lines = append(lines, []string{"  prefer it for", a.Prefer})
		if r := a.Restrictions.String(); r != "" {
			lines = append(lines, []string{"  only for", r})
		}
		for _, p := range a.Params {
			lines = append(lines, []string{"  " + p.Key + "=" + defaultOf(p), p.Values + ": " + p.Doc})
		}
		if err := printTable(w, lines); err != nil {
			return err
		}
	}
	return nil
}

// defaultOf returns a parameter's default, or … if that depends on the call.
func defaultOf(p algo.Param) string {
	if p.Default == "" {
		return "…"
	}
	return p.Default
}
