package sched

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The JSON form shows all ranks at once, by step of the [Timeline]. A program
// that knows nothing of this package can replay it: in each step the copies
// come first, in order; then all messages read what the buffers hold, and land
// in order.
//
// The steps of one rank's program follow from it in nearly all cases: a step of
// the program is everything that the rank does in one step of the timeline, and
// messages of the same blocks from one rank are one multicast. Where that is
// not so, the explicit form adds ends to every message and step to every copy,
// which say where in the programs they belong.
type jsonSchedule struct {
	Collective  string     `json:"collective"`
	Algorithm   string     `json:"algorithm"`
	P           int        `json:"p"`
	Root        int        `json:"root"`
	Blocks      int        `json:"blocks"`
	Scratch     int        `json:"scratch"`
	Commutative bool       `json:"commutative,omitempty"`
	Uneven      bool       `json:"uneven,omitempty"`
	EqualBlocks bool       `json:"equalBlocks,omitempty"`
	Steps       []jsonStep `json:"steps"`
}

type jsonStep struct {
	Copies   []jsonCopy    `json:"copies"`
	Messages []jsonMessage `json:"messages"`
}

type jsonCopy struct {
	Rank    int    `json:"rank"`
	Src     string `json:"src"`
	Blocks  [2]int `json:"blocks"`
	Dst     string `json:"dst"`
	At      int    `json:"at"`
	Combine string `json:"combine"`
	Step    *int   `json:"step,omitempty"` // the step of the rank's program
}

type jsonMessage struct {
	From    int       `json:"from"`
	To      int       `json:"to"`
	Src     string    `json:"src"`
	Blocks  [2]int    `json:"blocks"`
	Dst     string    `json:"dst"`
	At      int       `json:"at"`
	Combine string    `json:"combine"`
	Ends    *jsonEnds `json:"ends,omitempty"`
}

// jsonEnds is where a message belongs at its two ends: the step of each
// program, the send or receive of that step, and the destination of the send.
type jsonEnds struct {
	SendStep int `json:"sendStep"`
	Send     int `json:"send"`
	Copy     int `json:"copy"`
	RecvStep int `json:"recvStep"`
	Recv     int `json:"recv"`
}

// MarshalJSON writes the schedule as JSON. Only a schedule whose programs fit
// together has such a form: MarshalJSON fails where [Schedule.Timeline] does.
// [Schedule.WriteText] writes any schedule.
func (s *Schedule) MarshalJSON() ([]byte, error) {
	t, err := s.Timeline()
	if err != nil {
		return nil, fmt.Errorf("sched: no JSON form: %w", err)
	}
	doc := s.document(t, false)
	if back, err := doc.schedule(); err != nil || !back.Equal(s) {
		doc = s.document(t, true)
	}
	return json.Marshal(doc)
}

// document returns the JSON form of the timeline. Explicit adds to everything
// where in its rank's program it belongs.
func (s *Schedule) document(t *Timeline, explicit bool) *jsonSchedule {
	doc := &jsonSchedule{
		Collective: s.Collective.String(), Algorithm: s.Algorithm, P: s.P, Root: s.Root,
		Blocks: s.Blocks, Scratch: s.Scratch, Commutative: s.Commutative, Uneven: s.Uneven, EqualBlocks: s.EqualBlocks,
		Steps: make([]jsonStep, t.Steps()),
	}
	for i := range doc.Steps {
		step := jsonStep{Copies: []jsonCopy{}, Messages: []jsonMessage{}}
		for _, c := range t.Copies(i) {
			j := jsonCopy{c.Rank, c.Src.String(), [2]int{c.Blocks.Lo, c.Blocks.Hi}, c.Dst.String(), c.At, c.How.String(), nil}
			if explicit {
				j.Step = &c.LocalStep
			}
			step.Copies = append(step.Copies, j)
		}
		for _, m := range t.Messages(i) {
			j := jsonMessage{m.From, m.To, m.Src.String(), [2]int{m.Blocks.Lo, m.Blocks.Hi}, m.Dst.String(), m.At, m.How.String(), nil}
			if explicit {
				j.Ends = &jsonEnds{m.SendStep, m.Send, m.Dest, m.RecvStep, m.Recv}
			}
			step.Messages = append(step.Messages, j)
		}
		doc.Steps[i] = step
	}
	return doc
}

// UnmarshalJSON reads the form that MarshalJSON writes. It does not check the
// schedule.
func (s *Schedule) UnmarshalJSON(data []byte) error {
	var doc jsonSchedule
	if err := json.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("sched: %w", err)
	}
	read, err := doc.schedule()
	if err != nil {
		return fmt.Errorf("sched: %w", err)
	}
	*s = *read
	return nil
}

// schedule divides the document into programs.
func (doc *jsonSchedule) schedule() (*Schedule, error) {
	collective, err := ParseCollective(doc.Collective)
	if err != nil {
		return nil, err
	}
	a := assembly{programs: make(map[int]*assembled), gaps: maxGaps}
	for _, step := range doc.Steps {
		a.gaps += len(step.Copies) + 5*len(step.Messages)
	}
	s := &Schedule{
		Collective: collective, Algorithm: doc.Algorithm, P: doc.P, Root: doc.Root,
		Blocks: doc.Blocks, Scratch: doc.Scratch, Commutative: doc.Commutative, Uneven: doc.Uneven,
		EqualBlocks: doc.EqualBlocks, Make: a.program,
	}
	if err := s.validateRead(); err != nil {
		return nil, err
	}
	for i, step := range doc.Steps {
		for k, c := range step.Copies {
			if err := a.copy(s.P, i, c); err != nil {
				return nil, fmt.Errorf("step %d, copy %d: %w", i, k, err)
			}
		}
		for k, m := range step.Messages {
			if err := a.message(s.P, i, m); err != nil {
				return nil, fmt.Errorf("step %d, message %d: %w", i, k, err)
			}
		}
	}
	return s, a.finish()
}

// An assembly is the programs read so far.
type assembly struct {
	programs map[int]*assembled
	messages int
	explicit bool // messages have ends; ranks in Send.To and Recv.From are counted from one, until finish
	gaps     int  // how many more steps, sends and receives the lists may be extended by
}

// maxGaps bounds the empty steps of a document. Everything else that a document
// extends the lists by is there because of a copy, or because of a message: two
// steps, a send or a destination, and a receive.
const maxGaps = 1 << 12

type assembled struct {
	program Program
	global  int         // the step of the timeline that the last step of program stands for, plus one
	groups  map[int]int // per peer: the next send of the last step that could carry a message to it
}

func (a *assembly) program(_ *Builder, rank int) Program {
	if p := a.programs[rank]; p != nil {
		return p.program
	}
	return nil
}

// step returns a step of rank's program: the explicit one, or else the one that
// stands for a step of the timeline.
func (a *assembly) step(rank, global int, explicit *int) (*Step, *assembled, error) {
	p := a.programs[rank]
	if p == nil {
		p = &assembled{}
		a.programs[rank] = p
	}
	if explicit != nil {
		step, err := element(a, &p.program, *explicit)
		return step, p, err
	}
	if p.global != global+1 {
		p.program = append(p.program, Step{})
		p.global = global + 1
		p.groups = make(map[int]int)
	}
	return &p.program[len(p.program)-1], p, nil
}

func (a *assembly) copy(p, global int, c jsonCopy) error {
	if c.Rank < 0 || c.Rank >= p {
		return fmt.Errorf("no rank %d: want 0 to %d", c.Rank, p-1)
	}
	src, blocks, dst, how, err := parseMove(c.Src, c.Blocks, c.Dst, c.At, c.Combine)
	if err != nil {
		return err
	}
	step, _, err := a.step(c.Rank, global, c.Step)
	if err != nil {
		return err
	}
	step.Copies = append(step.Copies, Copy{src, blocks, dst, c.At, how})
	return nil
}

func parseMove(src string, blocks [2]int, dst string, at int, combine string) (Buffer, Range, Buffer, Combine, error) {
	r := Range{blocks[0], blocks[1]}
	if r.Lo < 0 || r.Hi < r.Lo || at < 0 {
		return 0, r, 0, 0, fmt.Errorf("blocks %d to %d at %d: want 0 ≤ lo ≤ hi and at ≥ 0", r.Lo, r.Hi, at)
	}
	from, err := ParseBuffer(src)
	if err != nil {
		return 0, r, 0, 0, err
	}
	to, err := ParseBuffer(dst)
	if err != nil {
		return 0, r, 0, 0, err
	}
	how, err := ParseCombine(combine)
	return from, r, to, how, err
}

func (a *assembly) message(p, global int, m jsonMessage) error {
	if min(m.From, m.To) < 0 || max(m.From, m.To) >= p {
		return fmt.Errorf("from %d to %d: want ranks 0 to %d", m.From, m.To, p-1)
	}
	src, blocks, dst, how, err := parseMove(m.Src, m.Blocks, m.Dst, m.At, m.Combine)
	if err != nil {
		return err
	}
	recv := Recv{m.From, dst, Range{m.At, m.At + blocks.Len()}, how}
	if a.messages++; a.messages == 1 {
		a.explicit = m.Ends != nil
	}
	if a.explicit != (m.Ends != nil) {
		return fmt.Errorf("ends are given for some messages: want all or none")
	}
	if a.explicit {
		return a.explicitMessage(global, m, src, blocks, recv)
	}
	from, sender, err := a.step(m.From, global, nil)
	if err != nil {
		return err
	}
	// Take the first send of these blocks that is not yet addressed to the
	// receiver and comes after all that are: so messages stay in order.
	at := sender.groups[m.To]
	for at < len(from.Sends) && (from.Sends[at].Src != src || from.Sends[at].Blocks != blocks) {
		at++
	}
	if at == len(from.Sends) {
		from.Sends = append(from.Sends, Send{nil, src, blocks})
	}
	from.Sends[at].To = append(from.Sends[at].To, m.To)
	sender.groups[m.To] = at + 1
	to, _, err := a.step(m.To, global, nil)
	if err != nil {
		return err
	}
	to.Recvs = append(to.Recvs, recv)
	return nil
}

// explicitMessage puts a message where its ends say.
func (a *assembly) explicitMessage(global int, m jsonMessage, src Buffer, blocks Range, recv Recv) error {
	from, _, err := a.step(m.From, global, &m.Ends.SendStep)
	if err != nil {
		return err
	}
	send, err := element(a, &from.Sends, m.Ends.Send)
	if err != nil {
		return err
	}
	if send.To != nil && (send.Src != src || send.Blocks != blocks) {
		return fmt.Errorf("one send of %v %v and of %v %v", send.Src, send.Blocks, src, blocks)
	}
	send.Src, send.Blocks = src, blocks
	to, err := element(a, &send.To, m.Ends.Copy)
	if err != nil {
		return err
	}
	step, _, err := a.step(m.To, global, &m.Ends.RecvStep)
	if err != nil {
		return err
	}
	at, err := element(a, &step.Recvs, m.Ends.Recv)
	if err != nil {
		return err
	}
	if *to != 0 || at.From != 0 {
		return fmt.Errorf("a second message with these ends")
	}
	*to = m.To + 1
	recv.From++
	*at = recv
	return nil
}

// element returns element i of *list, which it extends if necessary. In all, the
// lists do not become longer than the document can fill.
func element[S ~[]T, T any](a *assembly, list *S, i int) (*T, error) {
	if i < 0 || i >= len(*list)+a.gaps {
		return nil, fmt.Errorf("number %d in a list of %d: want the next", i, len(*list))
	}
	if more := i + 1 - len(*list); more > 0 {
		a.gaps -= more
		*list = append(*list, make([]T, more)...)
	}
	return &(*list)[i], nil
}

// finish returns an error if the explicit form left gaps, other than steps that do
// nothing.
func (a *assembly) finish() error {
	for rank, p := range a.programs {
		p.program = slices.DeleteFunc(p.program, Step.empty)
		if !a.explicit {
			continue
		}
		for i, step := range p.program {
			for k, send := range step.Sends {
				if slices.Contains(send.To, 0) || len(send.To) == 0 {
					return fmt.Errorf("rank %d, step %d: send %d has no message", rank, i, k)
				}
				for c := range send.To {
					send.To[c]--
				}
			}
			for k := range step.Recvs {
				if step.Recvs[k].From--; step.Recvs[k].From < 0 {
					return fmt.Errorf("rank %d, step %d: receive %d has no message", rank, i, k)
				}
			}
		}
	}
	return nil
}
