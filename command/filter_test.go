package command

import (
	"runtime"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/sched"
)

// Schedules have tables: a million of these take gigabytes.
func TestTooManySchedulesAreRefusedBeforeTheyAreMade(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is concurrent")
	}
	want := scheduleFilter{collectives: []sched.Collective{sched.Bcast}, ranks: numbersOfRanks(), memory: 4 << 30}
	if err := want.ranks.Set("1..16777216"); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := want.schedules()
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 schedules") {
		t.Errorf("got %v, want that these are too many", err)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
		t.Errorf("the refusal takes %d MiB", took)
	}
}

// An algorithm that takes few of the numbers has few schedules.
func TestNumbersThatAnAlgorithmDoesNotTakeAreNotCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing of it is concurrent")
	}
	want := scheduleFilter{collectives: []sched.Collective{sched.AllReduce}, ranks: numbersOfRanks(), memory: 4 << 30}
	want.algorithms.values = []string{"swing"}
	if err := want.ranks.Set("1..2000000"); err != nil {
		t.Fatal(err)
	}
	if want.tooMany() {
		t.Error("the powers of two up to two million are too many")
	}
}
