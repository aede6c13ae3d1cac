package algo_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/sched"
)

// A mutation breaks a step, or leaves it as it is. It may write to the step's
// slices but for the destinations of sends.
type mutation struct {
	name  string
	apply func(step *sched.Step)
}

// mutations returns every way to break one step of a schedule that is thought
// of here: drop, duplicate, redirect, reorder, resize, swap the side of a
// combine, take another buffer.
func mutations(p int, step sched.Step) (all []mutation) {
	add := func(name string, apply func(step *sched.Step)) { all = append(all, mutation{name, apply}) }
	for i := range step.Copies {
		add("drop a copy", func(s *sched.Step) { s.Copies = slices.Delete(s.Copies, i, i+1) })
		add("duplicate a copy", func(s *sched.Step) { s.Copies = append(s.Copies, s.Copies[i]) })
		add("move a copy", func(s *sched.Step) { s.Copies[i].At++ })
		each(func(b sched.Buffer) {
			add("copy from another buffer", func(s *sched.Step) { s.Copies[i].Src = b })
			add("copy to another buffer", func(s *sched.Step) { s.Copies[i].Dst = b })
		})
		resizes(func(f func(*sched.Range)) { add("resize a copy", func(s *sched.Step) { f(&s.Copies[i].Blocks) }) })
		sides(func(how sched.Combine) { add("combine a copy", func(s *sched.Step) { s.Copies[i].How = how }) })
	}
	for i, send := range step.Sends {
		add("drop a send", func(s *sched.Step) { s.Sends = slices.Delete(s.Sends, i, i+1) })
		add("duplicate a send", func(s *sched.Step) { s.Sends = append(s.Sends, s.Sends[i]) })
		for k := range send.To {
			add("drop a destination", func(s *sched.Step) {
				s.Sends[i].To = slices.Delete(slices.Clone(s.Sends[i].To), k, k+1)
			})
			for r := range p {
				add("redirect a send", func(s *sched.Step) {
					s.Sends[i].To = slices.Clone(s.Sends[i].To)
					s.Sends[i].To[k] = r
				})
			}
		}
		each(func(b sched.Buffer) { add("send from another buffer", func(s *sched.Step) { s.Sends[i].Src = b }) })
		resizes(func(f func(*sched.Range)) { add("resize a send", func(s *sched.Step) { f(&s.Sends[i].Blocks) }) })
	}
	for i := range step.Recvs {
		add("drop a receive", func(s *sched.Step) { s.Recvs = slices.Delete(s.Recvs, i, i+1) })
		add("duplicate a receive", func(s *sched.Step) { s.Recvs = append(s.Recvs, s.Recvs[i]) })
		for r := range p {
			add("redirect a receive", func(s *sched.Step) { s.Recvs[i].From = r })
		}
		each(func(b sched.Buffer) { add("receive into another buffer", func(s *sched.Step) { s.Recvs[i].Dst = b }) })
		resizes(func(f func(*sched.Range)) { add("resize a receive", func(s *sched.Step) { f(&s.Recvs[i].Blocks) }) })
		sides(func(how sched.Combine) {
			add("combine a receive on another side", func(s *sched.Step) { s.Recvs[i].How = how })
		})
	}
	return all
}

func each(f func(sched.Buffer)) {
	for _, b := range []sched.Buffer{sched.In, sched.Out, sched.Scratch} {
		f(b)
	}
}

func sides(f func(sched.Combine)) {
	for _, how := range []sched.Combine{sched.Replace, sched.Left, sched.Right} {
		f(how)
	}
}

func resizes(f func(func(*sched.Range))) {
	f(func(r *sched.Range) { r.Lo++ })
	f(func(r *sched.Range) { r.Lo-- })
	f(func(r *sched.Range) { r.Hi++ })
	f(func(r *sched.Range) { r.Hi-- })
	f(func(r *sched.Range) { r.Lo, r.Hi = r.Lo+1, r.Hi+1 })
	f(func(r *sched.Range) { r.Lo, r.Hi = r.Lo-1, r.Hi-1 })
}

// broken yields schedules that differ from s in one position.
func broken(s *sched.Schedule) iter.Seq2[string, *sched.Schedule] {
	return func(yield func(string, *sched.Schedule) bool) {
		for rank := range s.P {
			for i, step := range s.Program(rank) {
				what := func(m string) string { return fmt.Sprintf("%s: rank %d, step %d: %s", describe(s), rank, i, m) }
				for _, m := range mutations(s.P, step) {
					program := s.Program(rank)
					m.apply(&program[i])
					if !yield(what(m.name), with(s, rank, program)) {
						return
					}
				}
				if !yield(what("drop the step"), with(s, rank, slices.Delete(s.Program(rank), i, i+1))) {
					return
				}
				if program := s.Program(rank); i > 0 {
					program[i-1], program[i] = program[i], program[i-1]
					if !yield(what("do the step before first"), with(s, rank, program)) {
						return
					}
				}
			}
		}
	}
}

// brokenAtBothEnds yields schedules that lack a message, or carry less in one,
// so that sends and receives still match.
func brokenAtBothEnds(t *testing.T, s *sched.Schedule) iter.Seq2[string, *sched.Schedule] {
	timeline, err := s.Timeline()
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string, *sched.Schedule) bool) {
		for i := range timeline.Steps() {
			for _, m := range timeline.Messages(i) {
				what := fmt.Sprintf("%s: step %d, message %d→%d: ", describe(s), i, m.From, m.To)
				for _, f := range []func(*sched.Range){nil, func(r *sched.Range) { r.Lo++ }, func(r *sched.Range) { r.Hi-- }} {
					sender, receiver := s.Program(m.From), s.Program(m.To)
					out, in := &sender[m.SendStep], &receiver[m.RecvStep]
					change := "shrink"
					if send := &out.Sends[m.Send]; f == nil {
						change = "drop"
						in.Recvs = slices.Delete(in.Recvs, m.Recv, m.Recv+1)
						if send.To = slices.Delete(send.To, m.Dest, m.Dest+1); len(send.To) == 0 {
							out.Sends = slices.Delete(out.Sends, m.Send, m.Send+1)
						}
					} else if len(send.To) == 1 && m.Blocks.Len() > 0 {
						f(&send.Blocks)
						f(&in.Recvs[m.Recv].Blocks)
					}
					if !yield(what+change, with(with(s, m.From, sender), m.To, receiver)) {
						return
					}
				}
			}
		}
	}
}

// with returns s with another program for one rank.
func with(s *sched.Schedule, rank int, program sched.Program) *sched.Schedule {
	other := *s
	other.Make = func(_ *sched.Builder, r int) sched.Program {
		if r == rank {
			return program
		}
		return s.Program(r)
	}
	return &other
}

// form is the rules of good form that only the checker of sched knows: what
// breaks them may still come out right when it is played with lists.
var form = []string{
	"may differ in length", // blocks land where others belong
	"by a way round",       // or come through a third rank
	"overlaps itself",
	"to itself",
	"writes in",
	"takes no operator",
	"has in ", "has out ", "has scratch ", // a rank names blocks that it does not have
}

func isForm(err error) bool {
	return slices.ContainsFunc(form, func(rule string) bool { return strings.Contains(err.Error(), rule) })
}

// Whichever one thing is changed in a schedule that was right, if the outcome
// changes then both checkers see it, and if it does not then neither complains.
func TestEveryMutationThatChangesTheOutcomeIsCaught(t *testing.T) {
	for _, a := range algo.Catalog() {
		t.Run(fmt.Sprintf("%v/%s", a.Collective, a.Name), func(t *testing.T) {
			t.Parallel()
			compare := func(what string, mutant *sched.Schedule) bool {
				naive, check := checkNaively(mutant, orders["first"]), mutant.Check()
				if (naive == nil) != (check == nil) && (check == nil || !isForm(check)) {
					t.Errorf("%s\nnaive checker: %v\nsched.Check: %v", what, naive, check)
				}
				return true
			}
			for _, p := range []int{2, 3, 4, 5, 6} {
				if testing.Short() && p > 3 {
					break
				}
				if a.Restrictions.Allow(p) != nil {
					continue
				}
				specs := algo.Variants(a, p)
				if p > 4 || testing.Short() {
					specs = specs[:1]
				}
				for _, spec := range specs {
					for _, root := range []int{0, p / 2} {
						if root == 0 || a.Collective.Rooted() || a.Collective == sched.Shift {
							s := newSchedule(t, a.Collective, spec, p, root)
							if tally(t, s).messages > 60 {
								continue // what more steps show, fewer ranks or pieces show too
							}
							broken(s)(compare)
							brokenAtBothEnds(t, s)(compare)
						}
					}
				}
			}
		})
	}
}
