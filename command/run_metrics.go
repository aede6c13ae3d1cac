package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/launch"
)

// A metricsServer serves the sums of a job's ranks while the job runs.
type metricsServer struct {
	listener net.Listener
	server   http.Server
	serving  sync.WaitGroup
	sums     *rankSums
	dir      string // of the file of inproc; "" if there is none
}

// serveMetrics begins to serve, and has the ranks of a configuration report.
func serveMetrics(address string, cfg *launch.Config) (s *metricsServer, err error) {
	s = &metricsServer{sums: newRankSums()}
	if s.listener, err = net.Listen("tcp", address); err != nil {
		if errors.As(err, new(*net.AddrError)) {
			return nil, callErrorf("--metrics %s: %w: want a host and a port, as in 127.0.0.1:9090, or :0", address, err)
		}
		return nil, fmt.Errorf("--metrics %s: %w", address, err)
	}
	target := profile.Sent
	if cfg.Transport == "inproc" { // one process, which has no control connection
		if s.dir, err = os.MkdirTemp("", "chorale-metrics-"); err != nil {
			s.listener.Close()
			return nil, err
		}
		target = filepath.Join(s.dir, "ranks")
		s.sums.file = target
	}
	cfg.Env = append(cfg.Env, profile.MetricsVariable+"="+target)
	cfg.Metrics = s.sums.add
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.sums)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s.server = http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.serving.Go(func() { s.server.Serve(s.listener) }) // until close
	return s, nil
}

// url returns where the metrics are.
func (s *metricsServer) url() string {
	address := s.listener.Addr().(*net.TCPAddr)
	host := "localhost"
	if !address.IP.IsUnspecified() {
		host = address.IP.String()
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(address.Port)) + "/metrics"
}

func (s *metricsServer) close() {
	s.server.Close()
	s.serving.Wait()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// rankSums are the last sums of each rank. Their methods may be called concurrently.
type rankSums struct {
	file string // in which a process leaves the sums of all ranks; "" if they are sent

	mu       sync.Mutex
	ranks    map[int]profile.Totals
	reported map[int]time.Time
	waits    *profile.Waits
}

func newRankSums() *rankSums {
	return &rankSums{ranks: map[int]profile.Totals{}, reported: map[int]time.Time{}, waits: profile.NewWaits()}
}

// add takes the sums that a rank has sent. Sums that cannot be read are dropped.
func (s *rankSums) add(rank int, text []byte) {
	if t, err := profile.DecodeTotals(text); err == nil {
		s.set(rank, t, time.Now())
	}
}

func (s *rankSums) set(rank int, t profile.Totals, reported time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range t.Timed {
		s.waits.Add(rank, sample)
	}
	t.Timed = nil
	s.ranks[rank], s.reported[rank] = t, reported
}

// read reads the sums that a process has left.
func (s *rankSums) read() {
	info, err := os.Stat(s.file)
	if err != nil {
		return // there are none yet
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return // the job is over
	}
	for line := range bytes.Lines(text) {
		if t, err := profile.DecodeTotals(line); err == nil {
			s.set(t.Rank, t, info.ModTime())
		}
	}
}

// The metrics. Their names follow the conventions of Prometheus: base units, and _total for
// sums that only grow.
var (
	metricRanks        = describeMetric("ranks", "Number of ranks of the job.")
	metricReported     = describeMetric("report_timestamp_seconds", "Unix time of the rank's last report; ranks report each second until they leave.", "rank")
	metricCalls        = describeMetric("collective_calls_total", "Calls of a collective that have succeeded.", "collective", "rank")
	metricBytes        = describeMetric("collective_sent_bytes_total", "Bytes that the rank has sent in calls of a collective.", "collective", "rank")
	metricSeconds      = describeMetric("collective_seconds_total", "Seconds in calls of a collective, waiting for other ranks included.", "collective", "rank")
	metricWaiting      = describeMetric("collective_waiting_seconds_total", "Seconds of those in calls before the last rank had begun the same call, estimated from some of the calls; only where all ranks share a host.", "collective", "rank")
	metricMessageCalls = describeMetric("message_calls_total", "Operations on tagged messages that have succeeded.", "operation", "rank")
	metricMessageBytes = describeMetric("message_bytes_total", "Bytes of tagged messages that the rank has sent or received in an operation.", "operation", "rank")
	metricMessageTime  = describeMetric("message_seconds_total", "Seconds in operations on tagged messages, waiting for other ranks included.", "operation", "rank")
	metricFailures     = describeMetric("failures_total", "Calls that have returned an error.", "call", "rank")
	metricHeld         = describeMetric("held_bytes", "Bytes that the communicator of all ranks and the endpoint hold, by what they are for.", "use", "rank")

	allMetrics = []*prometheus.Desc{
		metricRanks, metricReported, metricCalls, metricBytes, metricSeconds, metricWaiting,
		metricMessageCalls, metricMessageBytes, metricMessageTime, metricFailures, metricHeld,
	}
)

func describeMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("chorale", "", name), help, labels, nil)
}

// Describe is for a registry.
func (s *rankSums) Describe(to chan<- *prometheus.Desc) {
	for _, d := range allMetrics {
		to <- d
	}
}

// Collect is for a registry.
func (s *rankSums) Collect(to chan<- prometheus.Metric) {
	if s.file != "" {
		s.read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	size, hosts := 0, map[string]bool{}
	for _, t := range s.ranks {
		size = max(size, t.Size)
		hosts[t.Host] = true
	}
	gauge(metricRanks, float64(size))
	for _, rank := range slices.Sorted(maps.Keys(s.ranks)) {
		t, label := s.ranks[rank], strconv.Itoa(rank)
		gauge(metricReported, float64(s.reported[rank].UnixMilli())/1e3, label)
		for _, c := range t.Calls {
			if c.Message {
				counter(metricMessageCalls, float64(c.Calls), c.Call, label)
				counter(metricMessageBytes, float64(c.Bytes), c.Call, label)
				counter(metricMessageTime, c.Time, c.Call, label)
				continue
			}
			counter(metricCalls, float64(c.Calls), c.Call, label)
			counter(metricBytes, float64(c.Bytes), c.Call, label)
			counter(metricSeconds, c.Time, c.Call, label)
			if len(hosts) == 1 { // the clocks of several differ
				waiting := s.waits.Sum(rank, c.Call, c.Time)
				if c.Waiting != nil {
					waiting = *c.Waiting
				}
				counter(metricWaiting, waiting, c.Call, label)
			}
		}
		for call, n := range t.Failures {
			counter(metricFailures, float64(n), call, label)
		}
		for use, n := range t.Held {
			gauge(metricHeld, float64(n), use, label)
		}
	}
}

// meteredRun serves metrics while f runs the job of a configuration.
func meteredRun(address string, stderr io.Writer, cfg launch.Config, f func(launch.Config) error) error {
	s, err := serveMetrics(address, &cfg)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintln(stderr, "chorale: metrics at", s.url())
	return f(cfg)
}
