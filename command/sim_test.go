package command

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// parseScenario returns the scenario of a call of sim.
func parseScenario(args ...string) (*scenario, error) {
	var e *scenario
	cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
	s := addSimulation(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		e, err = s.each()[0].scenario(cmd, args[0])
		return err
	}
	cmd.SetArgs(args)
	err := cmd.Execute()
	return e, err
}

// On the default network, the simulated time is the formula's, or the report gives the
// reason for the difference.
//
// CLAIM G1 G13 G14 S3 I1 I2 I3 V1 V3 V4
func TestTheSimulatedTimeIsTheFormulasOrTheReportSaysWhyNot(t *testing.T) {
	approximate := []string{"recursive-multiplying", "hierarchical"}
	for _, a := range algo.Catalog() {
		for _, p := range []int{1, 2, 3, 5, 8, 12, 16} {
			if a.Restrictions.Allow(p) != nil {
				continue
			}
			args := []string{a.Collective.String(), "-n", fmt.Sprint(p), "--algorithm", a.Name, "--top", "0.5", "--ts", "100"}
			if a.Restrictions.AllPort {
				args = append(args, "--ports", "all")
			}
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				e, err := parseScenario(args...)
				if err != nil {
					t.Fatal(err)
				}
				r, err := e.simulate(false)
				if err != nil {
					t.Fatal(err)
				}
				ref := e.compare(r, e.formula.cost)
				why := e.differs(r)
				if agree := ref.time == r.Time || math.Abs(ref.ratio-1) <= exact; agree != (len(why) == 0) || !agree && !slices.Contains(approximate, a.Name) {
					t.Errorf("time %v, the formula %v: %q", r.Time, ref.time, why)
				}
			})
		}
	}
}

func TestEveryReasonForADifferenceIsGiven(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bcast -n 8 --algorithm rotated --topology hypercube", "the formula is for --ports all"},
		{"alltoall -n 8 --algorithm direct --ports all", "the formula is for one port"},
		{"bcast -n 8 --memory-bandwidth 0.5", "the formula knows no limit of memory"},
		{"bcast -n 8 --algorithm binomial,order=ascending --topology linear", "the formula expects no congestion"},
		{"bcast -n 8 --algorithm binomial,order=ascending --topology linear --congestion share", "the formula expects no congestion"},
		{"bcast -n 8 --algorithm linear --topology linear --th 1", "the formula counts no hops"},
		{"bcast -n 8 --topology tree --th 1", "the formula counts no hops"},
		{"bcast -n 8 --topology tree --switching store-and-forward", "the formula is for cut-through"},
		{"reduce -n 7 --algorithm tree -m 8 --sync --top 1", ""},
		{"bcast -n 7 --algorithm scatter-allgather -m 20", "the formula expects equal pieces"},
		{"allreduce -n 5 --algorithm recursive-multiplying", "the formula is approximate"},
	} {
		e, err := parseScenario(strings.Fields(c.args)...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.simulate(false)
		if err != nil {
			t.Fatal(err)
		}
		if why := e.differs(r); strings.Join(why, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.args, why, c.want)
		}
	}
}

// On one port, no algorithm of the catalog takes less time than the lower bound:
// neither than each of its three parts, nor than their sum.
//
// CLAIM D5 S4
func TestNoAlgorithmGoesBelowTheLowerBound(t *testing.T) {
	for _, a := range algo.Catalog() {
		for _, p := range []int{1, 2, 3, 7, 8} {
			if a.Restrictions.Allow(p) != nil {
				continue
			}
			for _, costs := range []string{"--ts 1 --tw 0", "--ts 0 --tw 1", "--ts 0 --tw 0 --top 1", "--ts 5 --tw 1 --top 1"} {
				args := append([]string{a.Collective.String(), "-n", fmt.Sprint(p), "--algorithm", a.Name}, strings.Fields(costs)...)
				if a.Collective == sched.Shift {
					args = append(args, "--root", fmt.Sprint(p/2))
				}
				e, err := parseScenario(args...)
				if err != nil {
					t.Fatal(err)
				}
				r, err := e.simulate(false)
				if err != nil {
					t.Fatal(err)
				}
				if bound := e.bounds(r).sum.time; r.Time < bound*(1-exact) {
					t.Errorf("%s: time %v, below %v", strings.Join(args, " "), r.Time, bound)
				}
			}
		}
	}
}

// With the columns broadcasting and then the rows reducing, the product on a
// grid costs what one broadcast and one reduction do, for none meets another.
//
// CLAIM G5
func TestTheProductOnAGridCostsOneBroadcastAndOneReduction(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 16} {
		e, err := parseScenario("matvec", "-n", fmt.Sprint(n*n), "--ts", "50", "--tw", "3", "--top", "2")
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.simulate(true)
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Ceil(math.Log2(float64(n))) * (2*(50+3) + 2); r.Time != want || r.MaxLinkLoad > 1 {
			t.Errorf("%d×%d: time %v, want %v; link load %d", n, n, r.Time, want, r.MaxLinkLoad)
		}
		if n != 4 {
			continue
		}
		var received []string // by rank 9, and in its row
		for _, m := range r.Log {
			if m.To/4 == 2 && (m.To == 9 || m.From/4 == 2) {
				received = append(received, fmt.Sprintf("%d→%d", m.From, m.To))
			}
		}
		if want := []string{"1→9", "9→8", "11→10", "10→8"}; !slices.Equal(received, want) {
			t.Errorf("rank 9 and its row: %v, want %v", received, want)
		}
	}
}
