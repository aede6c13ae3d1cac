package inproc

import (
	"context"
	"sync/atomic"

	"github.com/chorale-go/chorale/transport"
)

// A stepState is the state of the step in progress, or of the last one.
type stepState struct {
	inProgress atomic.Bool
	peeks      bool // the present pass looks only where messages are likely
	signature  transport.Signature
	index      int                          // transport.Step.Index
	sends      []queuedSend                 // not written yet
	recvs      []postedRecv                 // not completed yet
	rendezvous []rendezvousSend             // written, perhaps not completed
	posted     struct{ sends, recvs int32 } // how many there were at first
	number     uint64                       // counts steps
	pass       uint64                       // counts passes over sends and recvs
}

// Exchange does one step, as [transport.Exchanger] says. It allocates nothing once
// it has seen steps of the same kind.
func (e *Endpoint) Exchange(ctx context.Context, step transport.Step) error {
	if err := e.err(step.Signature.Context); err != nil {
		return err
	}
	if err := transport.Cause(ctx); err != nil {
		return e.comm(step.Signature.Context).fail(ctx, err)
	}
	return e.comm(step.Signature.Context).exchange(ctx, step)
}

// exchange does one step.
func (s *commState) exchange(ctx context.Context, step transport.Step) (err error) {
	if s.step.inProgress.Swap(true) {
		return s.endpoint.fail(transport.ErrTwoSteps)
	}
	defer func() {
		if err != nil {
			err = s.fail(ctx, err)
			s.cancelSends()
			s.endStall()
		}
		s.step.releaseMemory()
		s.step.inProgress.Store(false)
	}()
	if s.waiter.load() == contextEnded {
		return errEnded
	}
	s.step.signature, s.step.index = step.Signature, step.Index
	s.step.number++
	rendezvous, err := s.post(step)
	s.step.posted.sends, s.step.posted.recvs = int32(len(s.step.sends)), int32(len(s.step.recvs))
	if rendezvous > 0 {
		s.incomplete.set(rendezvous)
	}
	if err != nil {
		return err
	}
	err = transport.ErrPanicked // unless what follows returns
	if step.Meanwhile != nil {
		if _, failed := s.poll(); failed != nil { // what has come is received first: its sender waits
			return failed
		}
		step.Meanwhile()
	}
	err = s.progress(ctx)
	return err
}

// post finds the links of the step, queues its sends, posts its receives, and
// returns how many of the sends are rendezvous.
func (s *commState) post(step transport.Step) (rendezvous int64, err error) {
	for i := range step.Sends {
		send := &step.Sends[i]
		for _, to := range send.To {
			l := s.out.get(to)
			if l == nil {
				if l, err = s.linkTo(to); err != nil {
					return rendezvous, err
				}
			}
			s.step.sends = append(s.step.sends, queuedSend{l, send.Data})
			if isRendezvous(len(send.Data)) {
				rendezvous++
			}
		}
	}
	for i := range step.Recvs {
		recv := &step.Recvs[i]
		l := s.in.get(recv.From)
		if l == nil {
			if l, err = s.linkFrom(recv.From); err != nil {
				return rendezvous, err
			}
		}
		s.step.recvs = append(s.step.recvs, postedRecv{l, recv})
	}
	return rendezvous, nil
}

// progress polls, and sleeps as the backoff says, until the step is complete. S is live
// in it to the end, so that the stack of its goroutine shows its address: see
// [transport.Stall].
//
//go:noinline
func (s *commState) progress(ctx context.Context) error {
	s.backoff.begin()
	for slept := false; ; {
		s.step.peeks = s.backoff.peeks()
		progressed, err := s.poll()
		switch {
		case err != nil || s.complete():
			if slept {
				s.endStall()
			}
			return err
		case progressed:
			s.backoff.begin()
		case !s.backoff.spin(&s.endpoint.job.spinning):
			if err := s.sleep(ctx); err != nil {
				return err
			}
			slept = true
			s.backoff.slept(&s.endpoint.job.spinning)
		}
	}
}

// poll makes one pass: it writes the sends that find a free cell, completes the
// receives whose messages have arrived, and reports whether there were any.
func (s *commState) poll() (progressed bool, err error) {
	s.step.pass++
	if len(s.step.sends) > 0 {
		if progressed, err = s.sendAll(); err != nil {
			return progressed, err
		}
	}
	if len(s.step.recvs) > 0 {
		var received bool
		received, err = s.receiveAll()
		progressed = progressed || received
	}
	return progressed, err
}

// complete reports whether the step is complete.
func (s *commState) complete() bool {
	return len(s.step.recvs) == 0 && len(s.step.sends) == 0 && (len(s.step.rendezvous) == 0 || s.incomplete.none())
}

// releaseMemory drops every reference to the caller's memory.
func (st *stepState) releaseMemory() {
	for _, r := range st.rendezvous {
		r.link.memory[(r.number-1)&r.link.mask].rendezvous = nil
	}
	clear(st.sends[:st.posted.sends])
	clear(st.recvs[:st.posted.recvs])
	st.sends, st.recvs, st.rendezvous = st.sends[:0], st.recvs[:0], st.rendezvous[:0]
}
