package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/internal/testenv"
)

// meteredJob starts a job of two ranks with metrics, whose rank 1 is late in each call, and
// returns where they are. The job ends with the test.
func meteredJob(t *testing.T, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command("chorale", append(append([]string{"run", "-n", "2", "--metrics", "127.0.0.1:0"}, args...), "metered")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(stderr)
	for url == "" && in.Scan() {
		_, url, _ = strings.Cut(in.Text(), "chorale: metrics at ")
	}
	t.Cleanup(func() {
		stdin.Close() // the job ends
		for in.Scan() {
			t.Log(in.Text())
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if url == "" {
		t.Fatal("no address is printed")
	}
	return url
}

// scrape returns the text of metrics.
func scrape(t *testing.T, url string) string {
	t.Helper()
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, error %v: %s", answer.StatusCode, err, text)
	}
	return string(text)
}

func TestMetricsAreServedDuringTheJob(t *testing.T) {
	for _, args := range [][]string{{"--transport", "shm"}, {"--transport", "tcp"}, {"--transport", "inproc"}, {"--profile"}} {
		t.Run(strings.Join(args, ""), func(t *testing.T) {
			url := meteredJob(t, args...)
			want := regexp.MustCompile(`(?s)chorale_collective_calls_total\{collective="allreduce",rank="0"\} .*` +
				`chorale_collective_waiting_seconds_total\{collective="allreduce",rank="0"\} [0-9.e-]*[1-9].*` +
				`chorale_failures_total\{call="bcast",rank="1"\} 1\n.*chorale_ranks 2\n`)
			var text string
			for deadline := time.Now().Add(20 * time.Second); !want.MatchString(text); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("want %v in\n%s", want, text)
				}
				text = scrape(t, url)
			}
		})
	}
}

func TestAnAddressInUseIsRefusedBeforeRanksStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := exec.Command("chorale", "run", "-n", "1", "--metrics", l.Addr().String(), "sh", "-c", "echo started").CombinedOutput()
	if err == nil || strings.Contains(string(out), "started") || !strings.HasPrefix(string(out), "chorale run: --metrics "+l.Addr().String()) {
		t.Errorf("error %v, and the command prints\n%s", err, out)
	}
}

// someSums are sums that have every metric.
func someSums() *rankSums {
	s, waiting := newRankSums(), 1.0
	s.set(0, profile.Totals{
		Size: 1, Failures: map[string]int64{"bcast": 1}, Held: map[string]int{"tagged": 3},
		Calls: []profile.CallTotals{
			{Call: "bcast", Calls: 1, Waiting: &waiting}, {Call: "send", Message: true, Calls: 1},
		},
	}, time.Now())
	return s
}

func TestMetricsKeepToTheConventionsOfPrometheus(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(someSums()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != len(allMetrics) {
		t.Fatalf("%d metrics, error %v: want all %d", len(families), err, len(allMetrics))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("error %v, problems %+v", err, problems)
	}
}

// The dashboard and the alerts name metrics that there are, and the dashboard has all.
func TestTheDashboardAndTheAlertsNameMetricsThatAreServed(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(someSums())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, f := range families {
		served = append(served, f.GetName())
	}
	const folder = "../docs/metrics"
	text, err := os.ReadFile(filepath.Join(folder, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			shown = append(shown, metricNames(target.Expr)...)
		}
	}
	if text, err = os.ReadFile(filepath.Join(folder, "alerts.yml")); err != nil {
		t.Fatal(err)
	}
	alerts := strings.Split(string(text), "- alert: ")[1:]
	for _, alert := range alerts {
		name, rest, _ := strings.Cut(alert, "\n")
		names := metricNames(rest)
		if !strings.Contains(rest, "expr: ") || len(names) == 0 {
			t.Errorf("alert %s is about no metric", name)
		}
		shown = append(shown, names...)
	}
	for _, name := range shown {
		if !slices.Contains(served, name) {
			t.Errorf("%s: want one of %v", name, served)
		}
	}
	for _, name := range served {
		if name != "chorale_ranks" && !slices.Contains(shown, name) {
			t.Errorf("nothing shows %s", name)
		}
	}
	if len(alerts) == 0 {
		t.Error("there are no alerts")
	}
}

// promtool has the parser of Prometheus itself, and its evaluation.
func TestPrometheusTakesTheAlertsAndTheExpressionsOfTheDashboard(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		testenv.Skip(t, "the rules are checked by promtool, of Debian's package prometheus: %v", err)
	}
	text, err := os.ReadFile("../docs/metrics/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	rules := "groups: [{name: dashboard, rules: [\n"
	for i, m := range regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(text, -1) {
		rules += fmt.Sprintf("{record: panel%d, expr: %s},\n", i, bytes.ReplaceAll(m[1], []byte("$__rate_interval"), []byte("5m")))
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, []byte(rules+"]}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "../docs/metrics/alerts.yml", file},
		{"test", "rules", "testdata/alerts.test.yml"},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func metricNames(expression string) []string {
	return regexp.MustCompile(`\bchorale_\w+`).FindAllString(expression, -1)
}
