package exec

import (
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// What a run writes must be on cache lines of its plan, or ranks that are goroutines slow
// each other down. The allocator gives objects of more than 512 bytes whole lines.
func TestShortProgramsAreOnCacheLinesOfTheirOwn(t *testing.T) {
	const sharedMax = 512
	if size := unsafe.Sizeof(Plan{}); unsafe.Sizeof(uintptr(0)) == 8 && size <= sharedMax {
		t.Errorf("a plan has %d bytes: want more than %d", size, sharedMax)
	}
	for collective, algorithm := range map[sched.Collective]string{
		sched.AllReduce: "recursive-doubling", sched.Bcast: "binomial", sched.Barrier: "dissemination", sched.AllToAll: "direct",
	} {
		s, err := algo.New(collective, algorithm, 2, 0, 8)
		if err != nil {
			t.Fatal(err)
		}
		l := NewLayout(s, 1, 8)
		p := Compile(s, Config{In: l, Out: l})
		if st := &p.steps[0]; st != &p.short.steps[0] || len(st.wire.Sends) > 0 && &st.wire.Sends[0] != &p.short.sends[0] || len(st.wire.Recvs) > 0 && &st.wire.Recvs[0] != &p.short.recvs[0] {
			t.Errorf("%v of two ranks: the program is not in the plan", collective)
		}
	}
}
