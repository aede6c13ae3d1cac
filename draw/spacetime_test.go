package draw

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// A timelineCase is a scene for the tests of figures over time.
type timelineCase struct {
	name     string
	op       sched.Collective
	spec     string
	p, m     int
	topology string
	config   sim.Config // without Topology and Record
}

var grama = model.Model{Ts: 10, Tw: 1}

var timelineCases = []timelineCase{
	{"one-rank", sched.Bcast, "binomial", 1, 8, "ring", sim.Config{Model: grama}},
	{"bcast-nearest-first", sched.Bcast, "binomial,order=ascending", 8, 8, "linear", sim.Config{Model: grama}},
	{"bcast-shared", sched.Bcast, "binomial,order=ascending", 8, 8, "linear", sim.Config{Model: grama, Share: true}},
	{"butterfly-7", sched.AllReduce, "butterfly", 7, 4, "full", sim.Config{Model: model.Model{Ts: 10, Tw: 1, Top: 0.5}}},
	{"halving", sched.AllReduce, "recursive-halving", 8, 16, "hypercube", sim.Config{Model: model.Model{Ts: 10, Tw: 1, Top: 1. / 3}}},
	{"direct", sched.AllReduce, "direct", 5, 9, "star", sim.Config{Model: model.Model{Ts: 10, Tw: 1, Th: 2, Top: 0.1}}},
	{"scatter-all-ports", sched.Scatter, "rotated", 8, 12, "hypercube", sim.Config{Model: grama, AllPort: true}},
	{"alltoall-linear", sched.AllToAll, "linear", 5, 3, "linear", sim.Config{Model: grama}},
	{"gather-33", sched.Gather, "binomial", 33, 2, "full", sim.Config{Model: grama}},
	{"forwarded", sched.AllGather, "ring", 6, 5, "mesh:2x3", sim.Config{Model: grama, StoreAndForward: true}},
	{"free", sched.Bcast, "binomial", 4, 8, "full", sim.Config{}},
	{"brief", sched.AllReduce, "ring", 3, 7, "ring", sim.Config{Model: model.Model{Ts: 2e-6, Tw: 1e-9, Top: 1e-10}}},
}

func (c timelineCase) scene(t *testing.T) Scene {
	t.Helper()
	s, err := algo.New(c.op, c.spec, c.p, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c.config.Topology, err = topo.Parse(c.topology, c.p); err != nil {
		t.Fatal(err)
	}
	c.config.Record = true
	parts := []sim.Part{{Schedule: s, Words: c.m}}
	r, err := sim.Run(c.config, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return Scene{Title: fmt.Sprintf("%v, %s, %d ranks on %s", c.op, c.spec, c.p, c.topology), Parts: parts, Result: r}
}

// A namedScene is one of timelineCases, or the grid: columns broadcast, then rows
// reduce, so that each rank has two parts.
type namedScene struct {
	name string
	Scene
}

func timelineScenes(t *testing.T) []namedScene {
	t.Helper()
	all := []namedScene{{"grid", gridScene(t)}}
	for _, c := range timelineCases {
		all = append(all, namedScene{c.name, c.scene(t)})
	}
	return all
}

func gridScene(t *testing.T) Scene {
	t.Helper()
	const n = 3
	network, err := topo.Parse("mesh:3x3", n*n)
	if err != nil {
		t.Fatal(err)
	}
	var parts []sim.Part
	for _, op := range []sched.Collective{sched.Bcast, sched.Reduce} {
		s, err := algo.New(op, "binomial", n, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			ranks := []int{i * n, i*n + 1, i*n + 2}
			if op == sched.Bcast {
				ranks = []int{i, n + i, 2*n + i}
			}
			parts = append(parts, sim.Part{Schedule: s, Ranks: ranks, Words: 4})
		}
	}
	r, err := sim.Run(sim.Config{Topology: network, Model: model.Model{Ts: 3, Tw: 1, Top: 0.7}, Record: true}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return Scene{Title: "a matrix times a vector", Parts: parts, Result: r}
}

func TestSpaceTimeDrawsEveryMessageTwiceAndOneArrow(t *testing.T) {
	for _, s := range timelineScenes(t) {
		t.Run(s.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := SpaceTime(&b, s.Scene); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			wellFormed(t, text)
			messages := len(s.Result.Log)
			for what, want := range map[string]int{": sent from": messages, ": received from": messages, "<circle ": messages} {
				if got := strings.Count(text, what); got != want {
					t.Errorf("%q stands there %d times: want %d", what, got, want)
				}
			}
			var again bytes.Buffer
			if err := SpaceTime(&again, s.Scene); err != nil || again.String() != text {
				t.Errorf("the second figure differs from the first (%v)", err)
			}
		})
	}
}

func TestSpaceTimeMatchesTheGoldenFiles(t *testing.T) {
	for _, c := range timelineCases {
		switch c.name {
		case "bcast-nearest-first", "butterfly-7", "scatter-all-ports":
			var b bytes.Buffer
			if err := SpaceTime(&b, c.scene(t)); err != nil {
				t.Fatal(err)
			}
			golden(t, "spacetime-"+c.name+".svg", b.Bytes())
		}
	}
}

func TestSpaceTimeSaysInWordsWhatItShows(t *testing.T) {
	for _, c := range timelineCases {
		if c.name != "bcast-nearest-first" {
			continue
		}
		var b bytes.Buffer
		if err := SpaceTime(&b, c.scene(t)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"8 ranks", "from 0 to 126 in the unit of ts", "Step 1: 0→1 from 0 to 18.",
			"1→3 from 36 to 54, after waiting since 18", "The critical path: 0→1, 0→2, 1→3 (waits for link 1→2)",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the description does not contain %q", want)
			}
		}
	}
}

func TestSpaceTimeRefusesUnreadableFigures(t *testing.T) {
	for _, c := range []timelineCase{
		{"ranks", sched.Bcast, "binomial", 65, 8, "full", sim.Config{Model: grama}},
		{"messages", sched.AllGather, "ring", 34, 8, "ring", sim.Config{Model: grama}},
	} {
		var b bytes.Buffer
		err := SpaceTime(&b, c.scene(t))
		if err == nil || !strings.Contains(err.Error(), "want at most 1024 among 64") || b.Len() > 0 {
			t.Errorf("%s: %d bytes and error %v", c.name, b.Len(), err)
		}
	}
}

func TestFiguresOverTimeNeedEveryMessage(t *testing.T) {
	unrecorded := timelineCases[1].scene(t)
	unrecorded.Result.Log = nil
	for _, s := range []Scene{unrecorded, {}} {
		for name, write := range map[string]func(io.Writer, Scene) error{"SpaceTime": SpaceTime, "Trace": Trace} {
			if err := write(io.Discard, s); err == nil || !strings.Contains(err.Error(), "want one made with Record") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

// A rank combines after the messages of a step. The total time of combining is
// that of the simulation.
func TestRanksCombineAfterTheMessagesOfAStep(t *testing.T) {
	for _, s := range timelineScenes(t) {
		for rank, all := range combiningBars(s.Scene) {
			sum, last := 0.0, 0.0
			for _, b := range all {
				sum += b.end - b.start
				if b.start < last {
					t.Errorf("%s: rank %d combines twice at %v", s.name, rank, b.start)
				}
				last = b.end
			}
			if got, want := shortNumber(sum), shortNumber(s.Result.PerRank[rank].Combining); got != want {
				t.Errorf("%s: rank %d combines for %s: want %s", s.name, rank, got, want)
			}
			if last > s.Result.PerRank[rank].End*(1+1e-12) {
				t.Errorf("%s: rank %d combines until %v, after its end %v", s.name, rank, last, s.Result.PerRank[rank].End)
			}
		}
	}
}

func TestNothingOverlapsOnATrack(t *testing.T) {
	for _, s := range timelineScenes(t) {
		for rank, l := range newRankTracks(s.Scene) {
			for _, track := range append(l.out, l.in...) {
				for i := 1; i < len(track); i++ {
					if before, b := track[i-1], track[i]; b.start < before.end {
						t.Errorf("%s: rank %d: %+v overlaps %+v", s.name, rank, b, before)
					}
				}
			}
		}
	}
}
