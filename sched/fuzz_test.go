package sched_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// fuzzMemory bounds what a fuzzed schedule may take.
const fuzzMemory = 16 << 20

// seeds adds the two forms of small schedules of every collective.
func seeds(f *testing.F, form func(*sched.Schedule) []byte) {
	for _, c := range sched.Collectives() {
		for _, a := range algo.For(c) {
			s, err := algo.New(c, a.Name, 4, 0, algo.VariantBytes)
			if err != nil {
				continue // a restriction
			}
			f.Add(form(s))
		}
	}
}

// A text that parses has a canonical form, which parses to the same schedule; a JSON
// form if its programs fit together, which does so, too; and an answer of Check, within
// the memory that it is given.
func FuzzScheduleText(f *testing.F) {
	seeds(f, func(s *sched.Schedule) []byte { return []byte(s.String()) })
	for _, text := range []string{
		exchange,
		"schedule alltoall x\nranks 60000\nblocks 60000",
		"schedule bcast x\nranks 2\nrank 0\nstep\nsend in 9223372036854775807..9223372036854775807 to 1\nrank 1\nstep\nrecv out 9223372036854775807..9223372036854775807 from 0",
		"schedule bcast x\nranks 2\nscratch 1073741824\nrank 0\nstep\ncopy in 0..1 to scratch 1073741823",
		"schedule barrier x\nranks 3\nrank 0\nstep\nsend in 0..0 to 1 2\nrank 1\nstep\nrecv out 0..0 from 0\nrank 2\nstep\nrecv out 0..0 from 0",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := sched.ParseText(text); err == nil {
			bothForms(t, s)
		}
	})
}

// The same for JSON.
func FuzzScheduleJSON(f *testing.F) {
	seeds(f, func(s *sched.Schedule) []byte {
		data, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		return data
	})
	for _, text := range []string{
		`{"collective":"alltoall","p":60000,"blocks":60000}`,
		`{"collective":"shift","p":2,"blocks":1,"steps":[{"copies":[{"rank":0,"src":"in","blocks":[0,1],"dst":"out","at":0,"step":9223372036854775807}]}]}`,
		`{"collective":"shift","p":2,"root":1,"blocks":1,"steps":[{"messages":[{"from":0,"to":1,"src":"in","blocks":[0,1],"dst":"out","ends":{"sendStep":0,"send":0,"copy":0,"recvStep":1,"recv":0}},{"from":1,"to":0,"src":"in","blocks":[0,1],"dst":"out","ends":{"sendStep":0,"send":0,"copy":0,"recvStep":1,"recv":0}}]}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sched.Schedule
		if err := json.Unmarshal(data, &s); err == nil {
			bothForms(t, &s)
		}
	})
}

// bothForms checks what was read.
func bothForms(t *testing.T, s *sched.Schedule) {
	if s.P > 1<<10 || s.Blocks > 1<<16 || s.Scratch > 1<<16 {
		if err := s.CheckWithin(fuzzMemory); err == nil && s.Collective.Combines() && s.P > 1 {
			t.Errorf("%d ranks of %d blocks are right without a message", s.P, s.Blocks)
		}
		return
	}
	var text bytes.Buffer
	if err := s.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if again, err := sched.ParseText(text.Bytes()); err != nil {
		t.Fatalf("%v, in\n%s", err, text.Bytes())
	} else if again.String() != text.String() || !again.Equal(s) {
		t.Fatalf("the text\n%s\nreads\n%s", text.Bytes(), again)
	}
	whole := s.CheckWithin(fuzzMemory)
	data, err := s.MarshalJSON()
	if err != nil {
		if whole == nil {
			t.Fatalf("a right schedule has no JSON form: %v", err)
		}
		return
	}
	var again sched.Schedule
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatalf("%v, in %s", err, data)
	}
	if !again.Equal(s) {
		t.Fatalf("the JSON %s reads\n%s, want\n%s", data, &again, s)
	}
	if same := again.CheckWithin(fuzzMemory); (same == nil) != (whole == nil) && !errors.Is(same, sched.ErrTooLarge) {
		t.Fatalf("as text %v, as JSON %v", whole, same)
	}
}
