package sched_test

import (
	"testing"

	"github.com/chorale-go/chorale/sched"
	"github.com/google/go-cmp/cmp"
)

// Programs that begin alike differ in what their operations say, and in where these lie
// once a list has moved to a larger one.
func TestAReusedBuilderMakesTheProgramsOfANewOne(t *testing.T) {
	build := func(b *sched.Builder, steps, distance, odd int) sched.Program {
		for step := range steps {
			b.Copy(sched.In, sched.Range{Lo: step, Hi: step + distance}, sched.Out, 0, sched.Left)
			to := []int{distance + step, distance, step}
			b.Send(sched.Out, sched.Range{Lo: 0, Hi: distance}, to[step%2:]...)
			if step == odd {
				b.Send(sched.In, sched.Range{Lo: 0, Hi: 1}, distance)
			}
			b.Recv(distance+step, sched.Scratch, sched.Range{Lo: 0, Hi: 1}, sched.Right)
			b.EndStep()
		}
		return b.Program()
	}
	var reused sched.Builder
	for i := range 200 {
		steps, distance, odd := i, 1+i%5, i/5
		if i%3 == 0 {
			steps /= 2
		}
		want, got := build(new(sched.Builder), steps, distance, odd), build(&reused, steps, distance, odd)
		if diff := cmp.Diff(want, got); len(want)+len(got) > 0 && diff != "" {
			t.Fatalf("program %d, of a new builder (-) and of a reused one (+):\n%s", i, diff)
		}
	}
}
