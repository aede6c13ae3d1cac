package failure

import (
	"reflect"
	"testing"
)

const (
	sum8  = "allreduce sum float64 count=8 algorithm=recursive-doubling"
	bcast = "bcast float64 count=8 root=1 algorithm=binomial"
)

func at(where, text string) *Call { return &Call{Text: text, Where: where} }

func TestRanksThatDifferInWhatTheyCallAreOneErrorThatNamesEachCallOnce(t *testing.T) {
	for name, test := range map[string]struct {
		failures []*Failure
		ranks    []int
		text     string
	}{
		"two calls": {[]*Failure{
			{Text: "a", Call: at("train/train.go:41", sum8), Peer: 2, Theirs: at("", bcast)},
			{Text: "b", Call: at("train/train.go:41", sum8), Peer: 0},
			{Text: "c", Call: at("train/train.go:55", bcast), Peer: 0, Theirs: at("", sum8)},
			{Text: "d", Call: at("train/train.go:41", sum8), Peer: 1},
		}, []int{0, 1, 2, 3}, "chorale: ranks differ in what they call: ranks 0–1, 3 called allreduce sum of 8 float64 (train/train.go:41), rank 2 bcast of 8 float64 with root 1 (train/train.go:55)"},
		"a rank that has sent no error": {[]*Failure{
			{Text: "a", Call: at("m/m.go:1", sum8), Peer: 1, Theirs: at("", bcast)}, nil,
		}, []int{0}, "chorale: ranks differ in what they call: rank 0 called allreduce sum of 8 float64 (m/m.go:1), rank 1 bcast of 8 float64 with root 1"},
		"a rank that fails because the other gave up": {[]*Failure{
			{Text: "a", Call: at("m/m.go:1", sum8), Peer: 1, Theirs: at("", bcast)},
			{Text: "b", Call: at("m/m.go:2", bcast), Peer: 0},
		}, []int{0, 1}, "chorale: ranks differ in what they call: rank 0 called allreduce sum of 8 float64 (m/m.go:1), rank 1 bcast of 8 float64 with root 1 (m/m.go:2)"},
		"one call fewer": {[]*Failure{
			{Call: &Call{Sequence: 4, Text: sum8, Where: "m/m.go:1"}, Peer: 1, Theirs: &Call{Sequence: 5, Text: sum8}},
			{Call: &Call{Sequence: 5, Text: sum8, Where: "m/m.go:1"}, Peer: 0},
		}, []int{0, 1}, "chorale: ranks differ in what they call: rank 0 called allreduce sum of 8 float64 as call 4 (m/m.go:1), rank 1 allreduce sum of 8 float64 as call 5 (m/m.go:1)"},
		"the algorithm alone": {[]*Failure{
			{Call: at("m/m.go:1", "barrier algorithm=linear"), Peer: 1, Theirs: at("", "barrier algorithm=ring")}, nil,
		}, []int{0}, "chorale: ranks differ in what they call: rank 0 called barrier by algorithm linear (m/m.go:1), rank 1 barrier by algorithm ring"},
		"what the program has put before": {[]*Failure{
			{Text: "epoch 3: chorale: x", Call: at("", sum8), Peer: 1, Theirs: at("", bcast)},
			{Text: "epoch 3: chorale: y", Call: at("", bcast), Peer: 0, Theirs: at("", sum8)},
		}, []int{0, 1}, "epoch 3: chorale: ranks differ in what they call: rank 0 called allreduce sum of 8 float64, rank 1 bcast of 8 float64 with root 1"},
	} {
		t.Run(name, func(t *testing.T) {
			want := []Shared{{Ranks: test.ranks, Text: test.text, Named: true}}
			if got := Share(test.failures); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOtherErrorsAreSharedByRanksWithTheSameText(t *testing.T) {
	got := Share([]*Failure{
		{Text: "boom", Details: "stack 0", Peer: -1},
		{Text: "a", Call: at("m/m.go:1", sum8), Peer: 3, Theirs: at("", bcast)},
		{Text: "boom", Details: "stack 2", Peer: -1},
		{Text: "b", Call: at("m/m.go:2", bcast), Peer: 1},
		{Text: "c", Call: &Call{Context: 1 << 12, Text: bcast}, Peer: 1},
	})
	want := []Shared{
		{Ranks: []int{0, 2}, Text: "boom", Details: "stack 0"},
		{Ranks: []int{1, 3}, Named: true, Text: "chorale: ranks differ in what they call: rank 1 called allreduce sum of 8 float64 (m/m.go:1), rank 3 bcast of 8 float64 with root 1 (m/m.go:2)"},
		{Ranks: []int{4}, Text: "c"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestTheTextOfACallInWords(t *testing.T) {
	for text, want := range map[string][2]string{
		"barrier algorithm=dissemination":                      {"barrier", "dissemination"},
		"shift [2]struct { X int } count=3 by=2 algorithm=d":   {"shift of 3 [2]struct { X int } by 2", "d"},
		"reduce func int count=0 root=12 algorithm=tree,k=2":   {"reduce func of 0 int with root 12", "tree,k=2"},
		"alltoall int counts algorithm=pairwise":               {"alltoall of int with counts", "pairwise"},
		"scatter int counts=[1 0 2] root=0 algorithm=binomial": {"scatter of int with counts [1 0 2] with root 0", "binomial"},
		"gather int counts=#a0ff root=0 algorithm=binomial":    {"gather of int with counts #a0ff with root 0", "binomial"},
		"somebody's own": {`"somebody's own"`, ""},
		"":               {`""`, ""},
	} {
		if words, algorithm := Words(text); words != want[0] || algorithm != want[1] {
			t.Errorf("%q: got %q, %q, want %q", text, words, algorithm, want)
		}
	}
}
