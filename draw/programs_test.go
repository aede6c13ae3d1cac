package draw

import (
	"bytes"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

func TestAWrongScheduleShowsItsFaultsInRed(t *testing.T) {
	for _, c := range []struct {
		name, programs string
		want           []string // parts of the picture
		stuck, fault   int      // boxes
		unmatched      int      // arrows
	}{
		{"right", "rank 0\nstep\ncopy in 0..1 to out 0\nstep\nsend in 0..1 to 1\nrank 1\nstep\nrecv out 0..1 from 0\n", nil, 0, 0, 0},
		{"nobody sends", "rank 1\nstep\nrecv out 0..1 from 0\n", []string{"0 does not send", "waiting for ever: rank 1 in step 1"}, 0, 1, 1},
		{"nobody receives", "rank 0\nstep\ncopy in 0..1 to out 0\nsend in 0..1 to 1\n", []string{"1 does not receive"}, 0, 1, 1},
		{"a circle", "rank 0\nstep\nrecv out 0..1 from 1\nstep\nsend in 0..1 to 1\nrank 1\nstep\nrecv out 0..1 from 0\nstep\nsend out 0..1 to 0\n",
			[]string{"waiting for ever: rank 0 in step 1, rank 1 in step 1"}, 1, 1, 0},
		{"the result lacks", "rank 0\nstep\nsend in 0..1 to 1\nrank 1\nstep\nrecv out 0..1 from 0\n", []string{"rank 0 at the end"}, 0, 1, 0},
	} {
		s, err := sched.Parse([]byte("schedule bcast mine\nranks 2\nroot 0\nblocks 1\nscratch 0\n" + c.programs))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		faults := sched.FaultsOf(s.Check())
		if (faults != nil) != (c.want != nil) {
			t.Errorf("%s: the check says %v", c.name, faults)
		}
		var b bytes.Buffer
		if err := Programs(&b, c.name, s, faults); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		wellFormed(t, text)
		golden(t, "programs/"+strings.ReplaceAll(c.name, " ", "-")+".svg", b.Bytes())
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the picture lacks %q", c.name, want)
			}
		}
		stuck, at, unmatched := strings.Count(text, `"step stuck"`), strings.Count(text, `"step fault"`), strings.Count(text, `"arrow unmatched"`)
		if stuck != c.stuck || at != c.fault || unmatched != c.unmatched {
			t.Errorf("%s: %d steps stuck, %d with the fault, %d arrows unmatched: want %d, %d and %d", c.name, stuck, at, unmatched, c.stuck, c.fault, c.unmatched)
		}
	}
}
