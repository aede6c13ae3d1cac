package sched_test

import (
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// BenchmarkCheck1024 checks the schedules with the most messages that there
// are: a ring of 1024 ranks has two million.
func BenchmarkCheck1024(b *testing.B) {
	for _, c := range []sched.Collective{sched.AllGather, sched.ReduceScatter, sched.AllReduce} {
		b.Run(c.String()+" ring", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := algo.New(c, "ring", 1024, 0, 0)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
