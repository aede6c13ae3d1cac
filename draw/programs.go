package draw

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sched"
)

// Programs draws the programs of a schedule, right or wrong: ranks across, the steps
// of each rank's program down, counted from 1. An arrow leads from a send to the receive
// that matches it. In red are messages that only one end has, steps that never end because
// a rank waits in them, and the faults, each at its rank and step.
//
// Programs returns an error if the picture would be too large to be read (more than
// 64 ranks, 256 steps of a rank or 2000 messages), or if w fails.
func Programs(w io.Writer, title string, s *sched.Schedule, faults sched.Faults) error {
	f, err := newProgramsFigure(title, s, faults)
	if err != nil {
		return err
	}
	return f.draw().writeTo(w)
}

// A programsFigure is a picture of programs while it is drawn.
type programsFigure struct {
	schedule *sched.Schedule
	faults   sched.Faults
	title    string
	steps    []int            // of each rank
	messages []programMessage // matched, then unmatched
	rounds   [][]int          // how many steps of each rank have ended, after each round
	done     []int            // and in the end
	*svg
}

func newProgramsFigure(title string, s *sched.Schedule, faults sched.Faults) (*programsFigure, error) {
	if s.P > maxNodes {
		return nil, fmt.Errorf("a picture of the programs of %d ranks: want at most %d", s.P, maxNodes)
	}
	f := &programsFigure{schedule: s, faults: faults, title: title}
	if err := f.match(); err != nil {
		return nil, err
	}
	f.run()
	return f, nil
}

// A programMessage is a send and the receive that matches it. The step of an end that
// does not exist is -1.
type programMessage struct{ from, to, sent, received int }

func (m programMessage) matched() bool { return m.sent >= 0 && m.received >= 0 }

const (
	programColumn = 124.0
	programRow    = 92.0
	programCell   = 56.0 // the height of a step
	programStub   = 46.0 // the length of an arrow with one end
	maxProgram    = 256  // steps
)

// match pairs sends and receives, in order for each pair of ranks.
func (f *programsFigure) match() error {
	sends, recvs := map[[2]int][]int{}, map[[2]int][]int{} // steps, by the ranks of a message
	var pairs [][2]int
	total := 0
	add := func(all map[[2]int][]int, from, to, step int) {
		pair := [2]int{from, to}
		if sends[pair] == nil && recvs[pair] == nil {
			pairs = append(pairs, pair)
		}
		all[pair] = append(all[pair], step)
		total++
	}
	for rank := range f.schedule.P {
		program := f.schedule.Program(rank)
		f.steps = append(f.steps, len(program))
		if len(program) > maxProgram {
			return fmt.Errorf("a picture of a program of %d steps: want at most %d", len(program), maxProgram)
		}
		for k, step := range program {
			for _, s := range step.Sends {
				for _, to := range s.To {
					add(sends, rank, to, k)
				}
			}
			for _, r := range step.Recvs {
				add(recvs, r.From, rank, k)
			}
		}
	}
	if total > 2*maxTotal {
		return fmt.Errorf("a picture of %d sends and receives: want at most %d", total, 2*maxTotal)
	}
	for _, pair := range pairs {
		s, r := sends[pair], recvs[pair]
		for i := range max(len(s), len(r)) {
			m := programMessage{pair[0], pair[1], -1, -1}
			if i < len(s) {
				m.sent = s[i]
			}
			if i < len(r) {
				m.received = r[i]
			}
			f.messages = append(f.messages, m)
		}
	}
	return nil
}

// run finds how far each rank gets if no send is buffered: a step ends when the
// partners of all its messages have begun theirs.
func (f *programsFigure) run() {
	f.done = make([]int, f.schedule.P)
	for progress := true; progress; {
		f.rounds = append(f.rounds, slices.Clone(f.done))
		waits := make([]bool, f.schedule.P)
		for _, m := range f.messages {
			sends := m.sent >= 0 && f.done[m.from] == m.sent
			receives := m.received >= 0 && f.done[m.to] == m.received
			if sends && (!m.matched() || f.done[m.to] < m.received) {
				waits[m.from] = true
			}
			if receives && (!m.matched() || f.done[m.from] < m.sent) {
				waits[m.to] = true
			}
		}
		progress = false
		for rank, n := range f.steps {
			if f.done[rank] < n && !waits[rank] {
				f.done[rank]++
				progress = true
			}
		}
	}
}

// problems says what is wrong.
func (f *programsFigure) problems() (all []string) {
	for _, fault := range f.faults {
		all = append(all, fault.Error())
	}
	if stuck := f.stuck(); len(stuck) > 0 {
		all = append(all, "waiting for ever: "+strings.Join(stuck, ", "))
	}
	return all
}

// stuck names the ranks that do not come to their ends.
func (f *programsFigure) stuck() (all []string) {
	for rank, n := range f.steps {
		if f.done[rank] < n {
			all = append(all, fmt.Sprintf("rank %d in step %d", rank, f.done[rank]+1))
		}
	}
	return all
}

func (f *programsFigure) x(rank int) float64 {
	return 92 + programColumn*(float64(min(max(rank, -1), f.schedule.P))+0.5)
}

func (f *programsFigure) y(step int) float64 { return headerHeight + 62 + programRow*float64(step) }

func (f *programsFigure) draw() *svg {
	rows := 1
	for _, n := range f.steps {
		rows = max(rows, n)
	}
	width := max(f.x(f.schedule.P-1)+programColumn, headingRoom)
	height := f.y(rows) + 8
	head := newHeading(figureInset, 30, 18, f.title, strings.Join(f.problems(), "; "), width)
	width = max(width, head.width)
	f.svg = newSVG("programs", f.title, f.describe(), width, height+footerHeight+head.more)
	head.draw(f.svg)
	for k := range rows {
		f.text(figureInset, f.y(k)+programCell/2+4, "step "+strconv.Itoa(k+1), "style", "font-weight:600;font-size:13px;fill:"+stepColor(k))
	}
	for rank, n := range f.steps {
		stroke, width := foreground, 1.5
		if len(f.faults.At(rank, -1, n)) > 0 { // it does nothing
			stroke, width = red, 3
		}
		f.empty("circle", "cx", f.x(rank), "cy", f.y(0)-32, "r", 15, "fill", subtle, "stroke", stroke, "stroke-width", width)
		f.text(f.x(rank), f.y(0)-27, strconv.Itoa(rank), "text-anchor", "middle", "style", "font-weight:600")
		for k := range n {
			f.drawStep(rank, k)
		}
	}
	for _, m := range f.messages {
		f.drawMessage(m)
	}
	f.text(figureInset, height+24, "an arrow leads from a send to its receive; red: a message without a partner, a step that never ends, the fault",
		"style", "font-size:12px;fill:"+muted)
	return f.svg
}

// drawStep draws a step of a rank as a box: white if the rank never begins it.
func (f *programsFigure) drawStep(rank, k int) {
	fill, stroke, width := subtle, muted, 1.0
	class := "step"
	if k > f.done[rank] {
		fill = background
	}
	if f.done[rank] == k {
		class, stroke, width = "step stuck", red, 2.5
	}
	if len(f.faults.At(rank, k, f.steps[rank])) > 0 {
		class, fill, stroke, width = "step fault", "#fbe4e8", red, 2.5
	}
	f.empty("rect", "class", class, "data-rank", rank, "data-step", k, "x", f.x(rank)-16, "y", f.y(k), "width", 32, "height", programCell, "rx", 6, "fill", fill, "stroke", stroke, "stroke-width", width)
}

// drawMessage draws an arrow from the top of the send's step to the bottom of the
// receive's, or half of a red one if there is but one end.
func (f *programsFigure) drawMessage(m programMessage) {
	color, class := "", "arrow"
	sent, received := m.sent, m.received
	switch {
	case m.matched():
		color = stepColor(sent)
	case received < 0:
		color, class, received = red, "arrow unmatched", sent
	default:
		color, class, sent = red, "arrow unmatched", received
	}
	side := 14.0
	if m.to < m.from {
		side = -side
	}
	a, b := point{f.x(m.from) + side, f.y(sent) + 10}, point{f.x(m.to) - side, f.y(received) + programCell - 10}
	along := b.sub(a)
	stub := along.scale(min(0.5, programStub/along.length())) // not as far as another rank
	at, text := 0.0, ""
	switch {
	case m.received < 0:
		b, text = a.add(stub), fmt.Sprintf("%d does not receive", m.to)
		at = b.x
	case m.sent < 0:
		a, text = b.add(stub.scale(-1)), fmt.Sprintf("%d does not send", m.from)
		at = a.x
	}
	head, shaft := straight(a, b).arrowhead()
	f.start("g", "class", class, "data-from", m.from, "data-sent", m.sent, "data-to", m.to, "data-received", m.received)
	f.element("title", m.describe())
	f.empty("path", "d", shaft.path(), "fill", "none", "stroke", color, "stroke-width", 1.9, "stroke-dasharray", "6 3.5")
	f.empty("path", "d", head, "fill", color)
	f.end()
	if text != "" {
		f.drawFaultLabel(point{at, f.y(max(m.sent, m.received)) + programCell + 14}, text)
	}
}

func (f *programsFigure) drawFaultLabel(at point, text string) {
	x := max(at.x, textWidth(text, 11)/2+4)
	f.text(x, at.y, text, "text-anchor", "middle",
		"style", "font-size:11px;font-weight:600;paint-order:stroke;stroke-width:4px;stroke:"+background+";fill:"+red)
}

func (m programMessage) describe() string {
	switch {
	case m.received < 0:
		return fmt.Sprintf("rank %d sends to rank %d in its step %d, and rank %d does not receive", m.from, m.to, m.sent+1, m.to)
	case m.sent < 0:
		return fmt.Sprintf("rank %d receives from rank %d in its step %d, and rank %d does not send", m.to, m.from, m.received+1, m.from)
	}
	return fmt.Sprintf("rank %d in its step %d to rank %d in its step %d", m.from, m.sent+1, m.to, m.received+1)
}

// describe returns the text alternative of the figure.
func (f *programsFigure) describe() string {
	var all []string
	for _, m := range f.messages {
		all = append(all, m.describe())
	}
	return fmt.Sprintf("The programs of %s. %s. Messages: %s.", plural(f.schedule.P, "rank"), strings.Join(f.problems(), "; "), strings.Join(all, "; "))
}
