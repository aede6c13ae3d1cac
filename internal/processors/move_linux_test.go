package processors

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadMovesToEachOfItsProcessors(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil || before.Count() < 2 {
		t.Skip("this thread has one processor")
	}
	seen := map[int]bool{}
	for i := range before.Count() {
		cpu := Nth(i)
		for range 100 {
			if MoveFrom(cpu); Current() != cpu {
				break
			}
		}
		if Current() == cpu {
			t.Errorf("the thread is on processor %d still", cpu)
		}
		if !before.IsSet(cpu) || seen[cpu] || Nth(i+before.Count()) != cpu {
			t.Fatalf("processor %d of %d is %d, after %v", i, before.Count(), cpu, seen)
		}
		seen[cpu] = true
		for range 100 { // the scheduler may move it away again
			if MoveTo(cpu); Current() == cpu {
				break
			}
		}
		if got := Current(); got != cpu {
			t.Errorf("the thread is on processor %d, not on %d", got, cpu)
		}
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the thread may run on %v, and before on %v", after, before)
	}
}

func TestAThreadDoesNotMoveToAProcessorThatItMayNotUse(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		t.Skip("this thread has one processor")
	}
	first, second := Nth(0), Nth(1)
	var one unix.CPUSet
	one.Set(first)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Skip(err)
	}
	defer unix.SchedSetaffinity(0, &all)
	if cpu := Nth(1); cpu != -1 {
		t.Errorf("of one processor, the second is %d", cpu)
	}
	if MoveTo(second); Current() != first {
		t.Errorf("the thread has moved to processor %d, not allowed", Current())
	}
}
