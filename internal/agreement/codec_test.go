package agreement

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// messageOf returns a message among some members in which about one of so many is lost.
func messageOf(random *rand.Rand, size, one int) Message {
	some := func() (members []int) {
		for member := range size {
			if random.IntN(one) == 0 {
				members = append(members, member)
			}
		}
		return members
	}
	return Message{
		Kind: Kind(random.IntN(4)), Accepted: random.IntN(2) == 0,
		Value: Value{Flags: random.Uint64(), Number: random.Uint32(), Lost: some()},
		Lost:  some(),
	}
}

func TestAMessageIsParsedAsItWasAppended(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{1, 2, 3, 64, 129, 1000, 40_000} {
		for _, one := range []int{1, 2, 100, 500, 20_000} {
			m := messageOf(random, size, one)
			b := m.Append(nil)
			if len(b) > MaxLen(size) {
				t.Fatalf("of %d members: %d bytes, want at most %d", size, len(b), MaxLen(size))
			}
			if got, err := Parse(b, size); err != nil || !reflect.DeepEqual(got, m) {
				t.Fatalf("of %d members: got %+v, %v, want %+v", size, got, err, m)
			}
		}
	}
}

func TestBytesThatAreNoMessageAreRefused(t *testing.T) {
	m := Message{Kind: Decide, Value: Value{Lost: []int{1, 300}}, Lost: []int{2}}
	b := m.Append(nil)
	for n := range b {
		if got, err := Parse(b[:n], 301); err == nil {
			t.Errorf("the first %d bytes: got %+v", n, got)
		}
	}
	if got, err := Parse(append(b, 0), 301); err == nil {
		t.Errorf("with one more byte: got %+v", got)
	}
	if got, err := Parse(b, 300); err == nil {
		t.Errorf("of 300 members: got %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	m := messageOf(rand.New(rand.NewPCG(1, 2)), 40, 2)
	f.Add(m.Append(nil), 40)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if m, err := Parse(b, size); err == nil {
			if again, err := Parse(m.Append(nil), size); err != nil || !reflect.DeepEqual(again, m) {
				t.Errorf("%+v is parsed as %+v, %v", m, again, err)
			}
		}
	})
}
