package main

import (
	"context"
	"flag"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
)

var (
	seed  = flag.Uint64("seed", 1, "the seed of the jobs")
	kills = flag.Int("kills", 100, "how many ranks are killed; 1000 take a minute or a few")
)

// The test binary is also the guard, the agent and the ranks.
func TestMain(m *testing.M) {
	if runPart(os.Args[1:]) {
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector takes a second to end
	os.Exit(m.Run())
}

// lossBound is generous: docs/reliability.md promises a second on a machine that is not
// loaded by other tests.
const lossBound = 5 * time.Second

// Ranks are killed in calls of all kinds, until two are left, over shm, tcp and both. Each
// survivor gets an error that names a lost rank, communicators without it go on, the survivors
// shrink and have the right sum, and the job ends with success and leaves nothing behind.
func TestSurvivorsGoOnWhoeverIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks share memory on Linux only")
	}
	s := soak{seed: *seed, deadly: true, kills: *kills}
	if testing.Short() {
		s.kills = min(s.kills, 30)
	}
	jobs(t, &s)
	if s.total.kills < s.kills || len(s.total.delays) == 0 {
		t.Errorf("%d ranks were killed, want %d; %d errors of survivors", s.total.kills, s.kills, len(s.total.delays))
	}
	for _, d := range s.total.delays {
		if d > lossBound {
			t.Errorf("a survivor gets its error %v after a kill, want at most %v", d, lossBound)
		}
	}
}

// One of the jobs that make soak runs for minutes, over all transports. It kills ranks, and has them
// started anew.
func TestJobsOfEachKind(t *testing.T) {
	for _, kind := range kinds {
		if runtime.GOOS != "linux" && kind != "inproc" && kind != "goroutines over tcp" && kind != "tcp" || kind == "namespaces" {
			continue
		}
		jobs(t, &soak{seed: *seed, kind: kind, first: 9, most: 1})
	}
}

func TestSurvivorsGoOnWhoeverIsKilledWhileTheyGrow(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks share memory on Linux only")
	}
	for kind, has := range map[string]func(p *program, ph *phase) bool{
		"shm": func(p *program, ph *phase) bool { return len(ph.growing) > 0 && len(ph.victims) > 0 },
		"tcp": func(p *program, ph *phase) bool { return len(ph.growing) > 1 && len(ph.victims) == 0 },
		"mixed": func(p *program, ph *phase) bool {
			return len(ph.growing) > 0 && slices.ContainsFunc(ph.victims, func(v victim) bool {
				_, stillborn := p.stillborn(v.rank)
				return stillborn
			})
		},
	} {
		jobs(t, &soak{seed: *seed, kind: kind, first: firstJob(kind, has), most: 1, times: 3})
	}
}

func TestSurvivorsGoOnWhenAHostIsLost(t *testing.T) {
	if err := checkNamespaces(); err != nil {
		testenv.Skip(t, "no host can be lost: %v", err)
	}
	for name, cable := range map[string]bool{"its cable is pulled out": true, "its processes are killed": false} {
		if cable && testing.Short() {
			continue // it is noticed after seconds
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			has := func(p *program, ph *phase) bool { // and nobody else is lost, whom survivors notice first
				return ph.host != nil && ph.host.cable == cable && !slices.ContainsFunc(ph.victims, func(v victim) bool { return v.when != withHost })
			}
			s := soak{seed: *seed, kind: "namespaces", first: firstJob("namespaces", has), most: 1}
			jobs(t, &s)
			if s.total.hosts != 1 || len(s.total.cuts) == 0 {
				t.Errorf("%d hosts are lost, and %d survivors have noticed it: want one, and all", s.total.hosts, len(s.total.cuts))
			}
		})
	}
}

// firstJob returns the number of the first short job of a kind whose first phase has something.
func firstJob(kind string, has func(*program, *phase) bool) int {
	for number := uint64(0); ; number++ {
		p := newProgram(*seed, number, false, kind)
		members := make([]int, p.size)
		for i := range members {
			members[i] = i
		}
		if p.phases <= 3 && has(p, p.phase(0, members)) {
			return int(number)
		}
	}
}

// A job is run again from its seed and number alone.
func TestAProgramFollowsFromItsSeedAndNumber(t *testing.T) {
	texts := make(map[string]bool)
	for number := range uint64(20) {
		for _, deadly := range []bool{false, true} {
			text := newProgram(7, number, deadly, "").text()
			if again := newProgram(7, number, deadly, "").text(); again != text {
				t.Errorf("job %d:\n%s\nand then\n%s", number, text, again)
			}
			texts[text] = true
		}
	}
	if len(texts) != 40 {
		t.Errorf("of 40 programs, %d differ", len(texts))
	}
}

func jobs(t *testing.T, s *soak) {
	t.Helper()
	if err := s.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Log(s)
}
