package selection

import (
	"strings"
	"testing"

	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// machineOf returns the rules of a profile with some for allreduce and one for alltoall, on
// 4 ranks over shared memory and 2 processors.
func machineOf(t testing.TB) *Machine {
	t.Helper()
	rule := func(collective, algorithm string, from, to int) model.Rule {
		return model.Rule{
			Collective: collective, Ranks: 4, From: from, To: to, Algorithm: algorithm,
			Bytes: to, Time: 12.34, BuiltIn: "direct", BuiltInTime: 24.68,
		}
	}
	s := model.Selection{Version: model.SelectionVersion, Transport: "shm", Processors: 2, Rules: []model.Rule{
		rule("allreduce", "linear", 0, 1023),
		rule("allreduce", "ring", 1024, 4096), // which is commutative
		rule("alltoall", "bruck", 0, 512),     // whose parts are equal
	}}
	if err := ValidateMachine([]model.Selection{s}); err != nil {
		t.Fatal(err)
	}
	return NewMachine([]model.Selection{s})
}

func TestTheProfilesRulesTakeThePlaceOfTheTables(t *testing.T) {
	m := machineOf(t)
	base := Query{Collective: sched.AllReduce, Ranks: 4, Transport: "shm", Processors: 2, Machine: m}
	for _, test := range []struct {
		what   string
		change func(q *Query)
		want   string // "" for the built-in choice
	}{
		{"the first byte", func(q *Query) {}, "linear"},
		{"the last of a rule", func(q *Query) { q.Bytes = 1023 }, "linear"},
		{"the first of the next", func(q *Query) { q.Bytes = 1024 }, "ring"},
		{"the last of all", func(q *Query) { q.Bytes = 4096 }, "ring"},
		{"beyond", func(q *Query) { q.Bytes = 4097 }, ""},
		{"other ranks", func(q *Query) { q.Ranks = 5 }, ""},
		{"other processors", func(q *Query) { q.Processors = 4 }, ""},
		{"unknown processors", func(q *Query) { q.Processors = 0 }, ""},
		{"another transport", func(q *Query) { q.Transport = "tcp" }, ""},
		{"another collective", func(q *Query) { q.Collective = sched.Bcast }, ""},
		{"several hosts", func(q *Query) { q.Hosts = "2" }, ""},
		{"a rule that keeps rank order", func(q *Query) { q.Ordered = true }, "linear"},
		{"a rule that does not", func(q *Query) { q.Ordered, q.Bytes = true, 2048 }, ""},
		{"no profile", func(q *Query) { q.Machine = nil }, ""},
	} {
		q := base
		test.change(&q)
		got, err := Choose(q)
		if err != nil {
			t.Fatal(err)
		}
		builtIn, err := BuiltIn(q)
		if err != nil {
			t.Fatal(err)
		}
		if want := test.want; want == "" && got != builtIn || want != "" && got.Algorithm != want {
			t.Errorf("%s: got %+v, want %s or else %+v", test.what, got, want, builtIn)
		}
	}
}

// As in the tables, a rule yields to the next best one where its algorithm does not fit.
func TestARuleForEqualPartsIsNotForUnevenOnes(t *testing.T) {
	q := Query{Collective: sched.AllToAll, Ranks: 4, Transport: "shm", Processors: 2, Machine: machineOf(t)}
	if c, err := Choose(q); err != nil || c.Algorithm != "bruck" {
		t.Errorf("equal parts: got %+v, %v", c, err)
	}
	q.Uneven = true
	if c, err := Choose(q); err != nil || c.Algorithm == "bruck" {
		t.Errorf("uneven parts: got %+v, %v", c, err)
	}
}

func TestTheReasonOfAProfilesRuleHasItsNumbers(t *testing.T) {
	c, err := Choose(Query{Collective: sched.AllReduce, Ranks: 4, Bytes: 2048, Transport: "shm", Processors: 2, Machine: machineOf(t)})
	want := "measured on this machine for 4K bytes: 12.3 µs, and 24.7 µs by direct (the profile's rule for 4 ranks, 1024 to 4096 bytes, transport shm)"
	if err != nil || c.Why() != want {
		t.Errorf("got %q, %v\nwant %q", c.Why(), err, want)
	}
}

func TestTheEnvironmentOverridesTheProfile(t *testing.T) {
	t.Setenv("CHORALE_ALGORITHM", "allreduce=tree")
	c, err := Choose(Query{Collective: sched.AllReduce, Ranks: 4, Transport: "shm", Processors: 2, Machine: machineOf(t)})
	if err != nil || c.Algorithm != "tree" || c.Forced != "allreduce=tree" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestRulesForWhatDoesNotExistAreRefusedAndChooseNothing(t *testing.T) {
	for want, rule := range map[string]model.Rule{
		`rule 1 of the selection for shm: no collective "fugue"`:                            {Collective: "fugue", Algorithm: "ring"},
		`rule 1 of the selection for shm: algo: bcast: no algorithm "rnig"`:                 {Collective: "bcast", Algorithm: "rnig"},
		`rule 1 of the selection for shm: mine.txt: want an algorithm of the catalog`:       {Collective: "bcast", Algorithm: "mine.txt"},
		`rule 1 of the selection for shm: algo: bcast "chain,segmnt=8K": chain has no para`: {Collective: "bcast", Algorithm: "chain,segmnt=8K"},
	} {
		rule.Ranks, rule.To = 2, 100
		list := []model.Selection{{Transport: "shm", Processors: 2, Rules: []model.Rule{rule}}}
		if err := ValidateMachine(list); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v: want %s", err, want)
		}
		q := Query{Collective: sched.Bcast, Ranks: 2, Transport: "shm", Processors: 2}
		builtIn, err := Choose(q)
		if err != nil {
			t.Fatal(err)
		}
		q.Machine = NewMachine(list)
		if c, err := Choose(q); err != nil || c != builtIn {
			t.Errorf("%s: got %+v, %v", rule.Algorithm, c, err)
		}
	}
}

func TestSelectionsWithoutRulesAreTheTables(t *testing.T) {
	if m := NewMachine([]model.Selection{{Transport: "shm", Processors: 2}}); m != nil {
		t.Errorf("got %+v", m)
	}
}

// BenchmarkChoose is the cost of a new shape of calls: one that the communicator has not
// compiled. Beside it, the call is compiled.
func BenchmarkChoose(b *testing.B) {
	of := machineOf(b)
	q := Query{Collective: sched.AllReduce, Ranks: 4, Bytes: 2048, Transport: "shm", Processors: 2}
	for _, test := range []struct {
		name   string
		change func(q *Query)
	}{
		{"tables", func(q *Query) {}},
		{"processors", func(q *Query) { q.Processors = 4 }},
		{"ordered", func(q *Query) { q.Ordered = true }},
		{"parameter", func(q *Query) { q.Collective = sched.Bcast }},
		{"odd", func(q *Query) { q.Transport, q.Collective, q.Ranks, q.Bytes = "tcp", sched.AllGather, 9, 64<<10 }},
		{"hosts", func(q *Query) { q.Transport, q.Hosts = "tcp", "2" }},
		{"hosts-parameter", func(q *Query) { q.Transport, q.Hosts, q.Collective = "tcp", "2", sched.Bcast }},
		{"hosts-map", func(q *Query) { q.Transport, q.Hosts, q.Ranks = "tcp", "map:0.3x1.4x0", 8 }},
		{"profile", func(q *Query) { q.Machine = of }},
		{"no-rule", func(q *Query) { q.Machine, q.Bytes = of, 8192 }},
	} {
		q := q
		test.change(&q)
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Choose(q); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(test.name+"/first", func(b *testing.B) { // of its kind
			b.ReportAllocs()
			for b.Loop() {
				choices = cache{}
				if _, err := Choose(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
