package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/chorale-go/chorale/internal/netns"
	"github.com/chorale-go/chorale/internal/testenv"
)

// A ranked algorithm is one for calls on two hosts.
type ranked struct {
	algorithm           string
	simulated, measured float64 // µs
}

// The network of the test: 80 Mbit/s, so that a word of 8 bytes takes 0.8 µs and a vector of
// 64 KiB 6.6 ms. Beside that, the other prices hardly count.
const (
	networkRate  = "80mbit"
	vectorWords  = 8 << 10
	ranksPerHost = 4
)

var networkPrices = []string{"--ts", "20", "--tw", "0.004", "--ts-between", "100", "--tw-between", "0.8", "--congestion", "share"}

// What the simulation says takes at most half as long as another algorithm takes less, on two
// hosts with a slow network between them: ranks by block, and going round the hosts. What a
// call selects is simulated to be among the best.
//
// go test ./command -run TestHostsConfirmTheOrderOfTheCandidates -v prints all of them.
func TestHostsConfirmTheOrderOfTheCandidates(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, processors take longer than the network")
	}
	hosts, inside := netns.Run(t)
	if !inside {
		return
	}
	for _, h := range hosts {
		if out, err := h.Command("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", networkRate, "burst", "32kbit", "latency", "400ms").CombinedOutput(); err != nil {
			testenv.Skip(t, "a slow network needs tc, and a kernel with tbf: %v: %s", err, out)
		}
	}
	for _, test := range []struct {
		collective string
		placement  string
		mapBy      string
		algorithms []string
	}{
		{"allreduce", "identity", "slot", []string{
			"hierarchical,between=recursive-doubling", "hierarchical,between=recursive-halving,leaders=4",
			"recursive-halving", "ring", "recursive-doubling"}},
		{"allreduce", "column-major:2x4", "host", []string{
			"hierarchical,between=recursive-doubling", "hierarchical,between=recursive-halving,leaders=4",
			"recursive-halving", "ring", "recursive-doubling"}},
		{"bcast", "column-major:2x4", "host", []string{"hierarchical", "hierarchical,leaders=4", "binomial", "chain"}},
		{"reduce", "column-major:2x4", "host", []string{"hierarchical", "hierarchical,leaders=4", "binomial", "reduce-scatter-gather"}},
	} {
		if testing.Short() && test.mapBy == "slot" {
			continue
		}
		all := simulateOnHosts(t, test.collective, test.placement, test.algorithms)
		for i, µs := range measureOnHosts(t, hosts, test.collective, test.mapBy, test.algorithms) {
			all[i].measured = µs
		}
		slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.simulated, b.simulated) })
		t.Logf("%s, ranks by %s:\n%s", test.collective, test.mapBy, describeCandidates(all))
		for i, a := range all {
			for _, b := range all[i:] {
				if 2*a.simulated <= b.simulated && a.measured >= b.measured {
					t.Errorf("%s, ranks by %s: %s takes %.0f µs, and %s %.0f: simulated, %.0f and %.0f",
						test.collective, test.mapBy, a.algorithm, a.measured, b.algorithm, b.measured, a.simulated, b.simulated)
				}
			}
		}
		if selected := simulateOnHosts(t, test.collective, test.placement, nil)[0]; selected.simulated > 1.25*all[0].simulated {
			t.Errorf("%s, ranks by %s: the call selects %s, which takes %.0f µs, and %s takes %.0f",
				test.collective, test.mapBy, selected.algorithm, selected.simulated, all[0].algorithm, all[0].simulated)
		}
	}
}

// simulateOnHosts simulates algorithms, or if there are none what a call selects.
func simulateOnHosts(t *testing.T, collective, placement string, algorithms []string) (all []ranked) {
	t.Helper()
	args := append([]string{"sim", collective, "--topology", fmt.Sprintf("hosts:2x%d", ranksPerHost), "--placement", placement, "-m", fmt.Sprint(vectorWords), "--format", "json"}, networkPrices...)
	if len(algorithms) > 0 {
		args = append(args, "--algorithm", strings.Join(algorithms, ","))
	}
	rows := json.NewDecoder(bytes.NewReader(outputOf(t, args...)))
	for rows.More() {
		var row struct {
			Algorithm string
			Time      float64
		}
		if err := rows.Decode(&row); err != nil {
			t.Fatal(err)
		}
		all = append(all, ranked{algorithm: row.Algorithm, simulated: row.Time})
	}
	if len(all) != max(1, len(algorithms)) {
		t.Fatalf("%d simulations of %q", len(all), algorithms)
	}
	return all
}

// measureOnHosts returns the medians of a job whose ranks are on both hosts.
func measureOnHosts(t *testing.T, hosts [2]netns.Host, collective, mapBy string, algorithms []string) (medians []float64) {
	t.Helper()
	var names []string
	for _, h := range hosts {
		names = append(names, fmt.Sprintf("%s:%d", processOf(h), ranksPerHost))
	}
	out := outputOf(t, "bench", collective, "-n", fmt.Sprint(2*ranksPerHost), "--hosts", strings.Join(names, ","), "--map-by", mapBy, "--launcher", "nsenter --net=/proc/{host}/ns/net --", "--no-copy",
		"--sizes", fmt.Sprint(8*vectorWords), "--algorithm", strings.Join(algorithms, ","), "--time", "10ms", "--format", "json")
	var result struct {
		Rows []struct{ Median float64 }
	}
	if err := json.Unmarshal(out, &result); err != nil || len(result.Rows) != len(algorithms) {
		t.Fatalf("%v, %d rows: %s", err, len(result.Rows), out)
	}
	for _, row := range result.Rows {
		medians = append(medians, row.Median)
	}
	return medians
}

// processOf returns the process that stands for a host.
func processOf(h netns.Host) string {
	file := h.Command("true").Args[1]
	return strings.TrimSuffix(strings.TrimPrefix(file, "--net=/proc/"), "/ns/net")
}

// outputOf returns what chorale prints.
func outputOf(t *testing.T, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	c := exec.Command("chorale", args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("chorale %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// describeCandidates writes a table.
func describeCandidates(all []ranked) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ALGORITHM\tSIMULATED µs\tMEASURED µs\tx SIM")
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\n", c.algorithm, c.simulated, c.measured, c.measured/c.simulated)
	}
	w.Flush()
	return out.String()
}
