package sim_test

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

func TestAWrongCallIsOneLineThatSaysWhatWouldBeRight(t *testing.T) {
	ring := must(topo.NewRing(8))
	part := func(c sched.Collective, spec string, p, words int, ranks ...int) sim.Part {
		return sim.Part{Schedule: must(algo.New(c, spec, p, 0, 0)), Words: words, Ranks: ranks}
	}
	program := func(rank int, steps ...sched.Step) sim.Part {
		return sim.Part{Words: 1, Schedule: &sched.Schedule{Collective: sched.Bcast, P: 2, Blocks: 1, Make: func(_ *sched.Builder, r int) sched.Program {
			if r == rank {
				return steps
			}
			return nil
		}}}
	}
	bcast := part(sched.Bcast, "binomial", 8, 8)
	one := sched.Range{Lo: 0, Hi: 1}
	for _, test := range []struct {
		name   string
		config sim.Config
		parts  []sim.Part
		want   string
	}{
		{"no topology", sim.Config{}, []sim.Part{bcast}, "no topology"},
		{"no parts", sim.Config{Topology: ring}, nil, "no schedule"},
		{"a part without a schedule", sim.Config{Topology: ring}, []sim.Part{{Words: 1}}, "no schedule"},
		{"negative start-up", sim.Config{Topology: ring, Model: model.Model{Ts: -1}}, []sim.Part{bcast}, "ts -1: want a number, 0 or more"},
		{"not a number", sim.Config{Topology: ring, Model: model.Model{Tw: math.NaN()}}, []sim.Part{bcast}, "tw NaN: want a number, 0 or more"},
		{"infinite", sim.Config{Topology: ring, Model: model.Model{Th: math.Inf(1)}}, []sim.Part{bcast}, `th \+Inf: want 0, or a number from 1e-100 to 1e\+100`},
		{"too small for an inverse", sim.Config{Topology: ring, MemoryBandwidth: 1e-310}, []sim.Part{bcast}, "memory bandwidth 1e-310: want 0, or a number from 1e-100 to .*"},
		{"negative words", sim.Config{Topology: ring}, []sim.Part{part(sched.Bcast, "binomial", 8, -1)}, "m -1: want a number of words, 0 or more"},
		{"fewer words than pieces", sim.Config{Topology: ring}, []sim.Part{part(sched.Bcast, "scatter-allgather", 8, 7)}, "m 7: bcast scatter-allgather on 8 ranks cuts it in 8 pieces: want m 8 or more"},
		{"more ranks than processors", sim.Config{Topology: ring}, []sim.Part{part(sched.Bcast, "binomial", 9, 8)}, "9 ranks on ring, which has 8 processors: want a larger one"},
		{"a short placement", sim.Config{Topology: ring, Placement: topo.Placement{0, 1}}, []sim.Part{bcast}, "a placement of 2 ranks: want 8"},
		{"two ranks on one processor", sim.Config{Topology: ring, Placement: topo.Placement{0, 1, 2, 3, 4, 5, 6, 6}}, []sim.Part{bcast}, "rank 7 on processor 6: want one from 0 to 7, each once"},
		{"too few ranks for a part", sim.Config{Topology: ring}, []sim.Part{part(sched.Bcast, "binomial", 8, 8, 1, 2)}, "2 ranks for a schedule of 8"},
		{"a rank twice in a part", sim.Config{Topology: ring}, []sim.Part{part(sched.Bcast, "binomial", 2, 8, 1, 1)}, "rank 1 in a part: want ranks from 0 on, each once"},
		{"a message that no rank receives", sim.Config{Topology: ring}, []sim.Part{program(0, sched.Step{Sends: []sched.Send{{To: []int{1}, Blocks: one}}})}, "the programs do not fit together: rank 0 sends a message that rank 1 does not receive"},
		{"a message that no rank sends", sim.Config{Topology: ring}, []sim.Part{program(1, sched.Step{Recvs: []sched.Recv{{From: 0, Blocks: one}}})}, "the programs do not fit together: rank 1 awaits a message of rank 0 that is not sent"},
		{"a message to a rank that is not there", sim.Config{Topology: ring}, []sim.Part{program(0, sched.Step{Sends: []sched.Send{{To: []int{2}, Blocks: one}}})}, "rank 0 sends to rank 2 of 2"},
		{"a message to oneself", sim.Config{Topology: ring}, []sim.Part{program(0, sched.Step{Sends: []sched.Send{{To: []int{0}, Blocks: one}}})}, "rank 0 sends to itself: want a copy"},
		{"too many messages", sim.Config{Topology: must(topo.NewRing(1 << 16))}, []sim.Part{part(sched.AllGather, "ring", 1<<16, 1)},
			`too large: about 4.3e\+09 messages would take .* GiB and .* s, and the limit is 4 GiB: want fewer ranks, an algorithm with fewer messages, or a higher limit`},
		{"more messages than numbers", sim.Config{Topology: must(topo.NewRing(1 << 16)), MemoryLimit: 1 << 50}, []sim.Part{part(sched.AllGather, "ring", 1<<16, 1)},
			`too large: about 4.3e\+09 messages would take .* GiB and .* s, and 2147483647 cannot be told apart: want fewer ranks, or an algorithm with fewer messages`},
	} {
		r, err := sim.Run(test.config, test.parts...)
		if err == nil {
			t.Errorf("%s: took %v", test.name, r.Time)
			continue
		}
		if !regexp.MustCompile("^" + test.want + "$").MatchString(err.Error()) {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
		if strings.HasPrefix(test.want, "too large") != errors.Is(err, sim.ErrTooLarge) {
			t.Errorf("%s: is ErrTooLarge: %v", test.name, errors.Is(err, sim.ErrTooLarge))
		}
	}
}

func TestARefusalSaysWhatItWouldTake(t *testing.T) {
	p := 1 << 12
	_, err := sim.Run(sim.Config{Topology: must(topo.NewHypercube(p)), MemoryLimit: 1 << 20},
		sim.Part{Schedule: must(algo.New(sched.AllReduce, "recursive-doubling", p, 0, 0)), Words: 1})
	var large *sim.TooLargeError
	if !errors.As(err, &large) {
		t.Fatal(err)
	}
	if large.Messages != float64(p*12) || large.Limit != 1<<20 || large.Bytes < 1<<20 || large.Seconds == 0 {
		t.Errorf("%+v: want %d messages, and more than %d bytes", large, p*12, 1<<20)
	}
}
