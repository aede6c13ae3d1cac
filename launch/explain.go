package launch

import (
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/launch/internal/remote"
)

// A StallError says that ranks have waited for others for as long as [Config.Stall], and
// that the job was ended because of that, as [Config.StallAbort] says.
type StallError struct {
	For   time.Duration // [Config.Stall]
	Cause string        // the likely cause
}

func (e *StallError) Error() string {
	return fmt.Sprintf("ended since ranks have waited for %v or longer: %s", e.For, e.Cause)
}

// stalled prints why ranks have waited for long, and ends the job if that is wanted. It
// blocks while the output does.
func (j *job) stalled(r *stall.Report, of *group) {
	if j.cfg.StallAbort {
		select {
		case j.stalls <- &StallError{j.cfg.Stall, r.Cause()}:
		default: // one is enough
		}
	}
	go j.warn(of.explained(r))
}

// explain prints what the ranks do.
func (j *job) explain() {
	if !j.explaining.TryLock() {
		return // it is about to be printed
	}
	defer j.explaining.Unlock()
	for _, text := range j.groups.explain() {
		j.warn(text)
	}
}

// stateOf returns why a rank does not answer.
func (j *job) stateOf(rank int) stall.Absence {
	for _, h := range j.hosts {
		if slices.Contains(h.ranks, rank) {
			return h.stateOf(rank)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return absence(processState(j.pids[rank]))
}

// absence says what the state of a process explains, as the system shows it.
func absence(state byte) stall.Absence {
	if state == 'T' || state == 't' { // t: by a debugger
		return stall.Stopped
	}
	return stall.NoAnswer
}

// stateTimeout bounds how long an agent may take to say in which state a process is.
const stateTimeout = time.Second

// stateOf asks the agent for the state of a rank's process.
func (h *host) stateOf(rank int) stall.Absence {
	r := h.task(rank)
	select {
	case <-r.state: // an answer that came too late
	default:
	}
	h.frames.Send(remote.FrameState, rank, nil)
	select {
	case state := <-r.state:
		return absence(state)
	case <-time.After(stateTimeout):
		return stall.NotReached
	}
}
