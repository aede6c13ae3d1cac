package sched_test

import (
	"fmt"
	"log"

	"github.com/chorale-go/chorale/sched"
)

// A schedule written by hand: a broadcast along a chain of three ranks.
func ExampleParse() {
	s, err := sched.Parse([]byte(`
schedule bcast by-hand
ranks 3
rank 0
  step
    copy in 0..1 to out 0
    send out 0..1 to 1
rank 1
  step
    recv out 0..1 from 0
  step
    send out 0..1 to 2
rank 2
  step
    recv out 0..1 from 1
`))
	if err != nil {
		log.Fatal(err) // the line that is wrong
	}
	if err := s.Check(); err != nil {
		log.Fatal(err) // the rank, step and block that are wrong
	}
	timeline, err := s.Timeline()
	if err != nil {
		log.Fatal(err)
	}
	for step := range timeline.Steps() {
		for _, m := range timeline.Messages(step) {
			fmt.Printf("step %d: %d→%d\n", step+1, m.From, m.To)
		}
	}
	// Output:
	// step 1: 0→1
	// step 2: 1→2
}

// Check finds that rank 1 sends what it never received.
func ExampleSchedule_Check() {
	s, err := sched.Parse([]byte(`
schedule bcast wrong
ranks 2
rank 0
  step
    recv out 0..1 from 1
rank 1
  step
    send out 0..1 to 0
`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Check())
	// Output:
	// line 9: rank 1 in step 1, peer 0, block 0: sends from out what was never written
}

// A replay says what every rank holds after each step.
func ExampleTimeline_Replay() {
	s, err := sched.Parse([]byte(`
schedule reduce by-hand
ranks 3
rank 0
  step
    copy in 0..1 to out 0
    recv out 0..1 from 1 combine right
  step
    recv out 0..1 from 2 combine right
rank 1
  step
    send in 0..1 to 0
rank 2
  step
    send in 0..1 to 0
`))
	if err != nil {
		log.Fatal(err)
	}
	timeline, err := s.Timeline()
	if err != nil {
		log.Fatal(err)
	}
	replay := timeline.Replay()
	for step := range timeline.Steps() {
		if err := replay.Step(); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("after step %d: %v\n", step+1, replay.Value(0, sched.Out, 0))
	}
	// Output:
	// after step 1: block 0 of ranks 0–1
	// after step 2: block 0 of ranks 0–2
}
