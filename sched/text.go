package sched

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteText writes the schedule in its canonical text form: a header, and the
// program of every rank that has one.
//
//	schedule bcast binomial
//	ranks 4
//	root 0
//	blocks 1
//	scratch 0
//
//	rank 0
//	  step
//	    copy in 0..1 to out 0
//	    send out 0..1 to 2
//	  step
//	    send out 0..1 to 1
//	rank 1
//	  step
//	    recv out 0..1 from 0
//	…
//
// A range lo..hi is half open. A copy or receive that combines ends in "combine
// left" (incoming ⊕ held) or "combine right" (held ⊕ incoming); a send may name
// several ranks. The header line "commutative" marks a schedule for operators
// that commute, "uneven" one that is right also where parts differ in length,
// "equal-blocks" one that is right only where all blocks are equally long.
// Wrong schedules have a text form, too. Neither form has the steps that do
// nothing.
func (s *Schedule) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, strings.TrimSpace(fmt.Sprintf("schedule %v %s", s.Collective, s.Algorithm)))
	fmt.Fprintf(b, "ranks %d\nroot %d\nblocks %d\nscratch %d\n", s.P, s.Root, s.Blocks, s.Scratch)
	if s.Commutative {
		fmt.Fprintln(b, "commutative")
	}
	if s.Uneven {
		fmt.Fprintln(b, "uneven")
	}
	if s.EqualBlocks {
		fmt.Fprintln(b, "equal-blocks")
	}
	fmt.Fprintln(b)
	var reused Builder
	for rank := range s.P {
		program := s.Make(&reused, rank)
		if len(program) > 0 {
			fmt.Fprintf(b, "rank %d\n", rank)
		}
		for _, step := range program {
			if step.empty() {
				continue
			}
			fmt.Fprintln(b, "  step")
			writeStep(b, step)
		}
	}
	return b.Flush()
}

func writeStep(w io.Writer, step Step) {
	for _, c := range step.Copies {
		fmt.Fprintf(w, "    copy %v %v to %v %d%s\n", c.Src, c.Blocks, c.Dst, c.At, combineText(c.How))
	}
	for _, s := range step.Sends {
		fmt.Fprintf(w, "    send %v %v to %s\n", s.Src, s.Blocks, strings.Trim(fmt.Sprint(s.To), "[]"))
	}
	for _, r := range step.Recvs {
		fmt.Fprintf(w, "    recv %v %v from %d%s\n", r.Dst, r.Blocks, r.From, combineText(r.How))
	}
}

func combineText(how Combine) string {
	if how == Replace {
		return ""
	}
	return " combine " + how.String()
}

// String returns the canonical text form.
func (s *Schedule) String() string {
	var b strings.Builder
	s.WriteText(&b) // a strings.Builder never fails
	return b.String()
}

// Parse reads a schedule in either form: JSON if it begins with a brace, text
// otherwise. It does not check the schedule: call [Schedule.Check]. An error in
// a text names the line.
func Parse(data []byte) (*Schedule, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		s := new(Schedule)
		if err := s.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		return s, nil
	}
	return ParseText(data)
}

// ParseText reads the text form of [Schedule.WriteText]. Indentation and empty
// lines mean nothing, and # begins a comment. The defaults for missing header
// lines are root 0, one block and no scratch. It does not check the schedule.
// An error names the line.
func ParseText(data []byte) (*Schedule, error) {
	p := parser{s: &Schedule{Blocks: 1}, rank: -1}
	for line := range bytes.Lines(data) {
		p.at++
		line, _, _ = bytes.Cut(line, []byte("#")) // most lines have no comment
		p.line = strings.Fields(string(line))
		if len(p.line) == 0 {
			continue
		}
		if err := p.parseLine(); err != nil {
			return nil, fmt.Errorf("sched: line %d: %w", p.at, err)
		}
	}
	if !p.named {
		return nil, fmt.Errorf("sched: no schedule: want a first line like \"schedule bcast mine\"")
	}
	return p.finish()
}

// A parser is what was read so far, and the rest of the current line.
type parser struct {
	s        *Schedule
	named    bool
	rank     int
	inStep   bool
	programs map[int]*Builder
	line     []string
	at       int // the line's number
}

// keywords has the parser of each line by its first word.
var keywords = map[string]func(*parser) error{
	"schedule":     (*parser).schedule,
	"ranks":        func(p *parser) error { return p.number(&p.s.P) },
	"root":         func(p *parser) error { return p.number(&p.s.Root) },
	"blocks":       func(p *parser) error { return p.number(&p.s.Blocks) },
	"scratch":      func(p *parser) error { return p.number(&p.s.Scratch) },
	"commutative":  func(p *parser) error { p.s.Commutative = true; return nil },
	"uneven":       func(p *parser) error { p.s.Uneven = true; return nil },
	"equal-blocks": func(p *parser) error { p.s.EqualBlocks = true; return nil },
	"rank":         (*parser).program,
	"step":         (*parser).step,
	"copy":         func(p *parser) error { return p.inside(p.copy) },
	"send":         func(p *parser) error { return p.inside(p.send) },
	"recv":         func(p *parser) error { return p.inside(p.recv) },
}

func (p *parser) parseLine() error {
	keyword := p.word()
	parse, ok := keywords[keyword]
	switch {
	case !ok:
		return fmt.Errorf("%q: want schedule, ranks, root, blocks, scratch, commutative, uneven, equal-blocks, rank, step, copy, send or recv", keyword)
	case !p.named && keyword != "schedule":
		return fmt.Errorf("%q before the line \"schedule COLLECTIVE NAME\"", keyword)
	}
	if err := parse(p); err != nil {
		return err
	}
	if len(p.line) > 0 {
		return fmt.Errorf("%q is too much", strings.Join(p.line, " "))
	}
	return nil
}

// word removes and returns the first word of the line, or "".
func (p *parser) word() string {
	if len(p.line) == 0 {
		return ""
	}
	w := p.line[0]
	p.line = p.line[1:]
	return w
}

func (p *parser) expect(word string) error {
	if got := p.word(); got != word {
		return fmt.Errorf("%q: want %q", got, word)
	}
	return nil
}

func (p *parser) schedule() (err error) {
	if p.named {
		return fmt.Errorf("a second schedule: want one")
	}
	p.named = true
	if p.s.Collective, err = ParseCollective(p.word()); err != nil {
		return err
	}
	if p.s.Collective == Barrier {
		p.s.Blocks = 0
	}
	p.s.Algorithm = p.word()
	return nil
}

func (p *parser) number(at *int) (err error) {
	if p.rank >= 0 {
		return fmt.Errorf("a header line after a program: want it before the first line \"rank R\"")
	}
	*at, err = p.int()
	return err
}

func (p *parser) int() (int, error) {
	w := p.word()
	n, err := strconv.Atoi(w)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q: want a number", w)
	}
	return n, nil
}

func (p *parser) program() (err error) {
	p.inStep = false
	if p.rank, err = p.int(); err != nil {
		return err
	}
	if p.rank >= p.s.P {
		return fmt.Errorf("rank %d of %d: want 0 to %d (a line \"ranks P\" comes first)", p.rank, p.s.P, p.s.P-1)
	}
	if p.programs[p.rank] != nil {
		return fmt.Errorf("a second program for rank %d: want one", p.rank)
	}
	if p.programs == nil {
		p.programs, p.s.lines = make(map[int]*Builder), make(map[int]*programLines)
	}
	p.programs[p.rank], p.s.lines[p.rank] = new(Builder), &programLines{rank: p.at}
	return nil
}

func (p *parser) step() error {
	if p.rank < 0 {
		return fmt.Errorf("a step before any line \"rank R\"")
	}
	p.programs[p.rank].EndStep()
	p.inStep = true
	steps := &p.s.lines[p.rank].steps
	if n := len(*steps); n > 0 && (*steps)[n-1].empty() { // a step that does nothing is none
		*steps = (*steps)[:n-1]
	}
	*steps = append(*steps, stepLines{step: p.at})
	return nil
}

// lines returns those of the current step.
func (p *parser) lines() *stepLines {
	steps := p.s.lines[p.rank].steps
	return &steps[len(steps)-1]
}

// inside parses a line that must stand in a step.
func (p *parser) inside(parse func(*Builder) error) error {
	if !p.inStep {
		return fmt.Errorf("want a line \"step\" first")
	}
	return parse(p.programs[p.rank])
}

func (p *parser) copy(b *Builder) error {
	src, blocks, err := p.bufferRange()
	if err != nil {
		return err
	}
	if err := p.expect("to"); err != nil {
		return err
	}
	dst, err := ParseBuffer(p.word())
	if err != nil {
		return err
	}
	at, err := p.int()
	if err != nil {
		return err
	}
	how, err := p.how()
	if err != nil {
		return err
	}
	p.lines().copies = append(p.lines().copies, p.at)
	b.copies = append(b.copies, Copy{src, blocks, dst, at, how})
	return nil
}

func (p *parser) send(b *Builder) error {
	src, blocks, err := p.bufferRange()
	if err != nil {
		return err
	}
	if err := p.expect("to"); err != nil {
		return err
	}
	var to []int
	for more := true; more; more = len(p.line) > 0 {
		r, err := p.int()
		if err != nil {
			return err
		}
		to = append(to, r)
	}
	p.lines().sends = append(p.lines().sends, p.at)
	b.Send(src, blocks, to...)
	return nil
}

func (p *parser) recv(b *Builder) error {
	dst, blocks, err := p.bufferRange()
	if err != nil {
		return err
	}
	if err := p.expect("from"); err != nil {
		return err
	}
	from, err := p.int()
	if err != nil {
		return err
	}
	how, err := p.how()
	if err != nil {
		return err
	}
	p.lines().recvs = append(p.lines().recvs, p.at)
	b.Recv(from, dst, blocks, how)
	return nil
}

func (p *parser) how() (Combine, error) {
	if len(p.line) == 0 {
		return Replace, nil
	}
	if err := p.expect("combine"); err != nil {
		return 0, err
	}
	side := p.word()
	if how, err := ParseCombine(side); err == nil && how != Replace {
		return how, nil
	}
	return 0, fmt.Errorf("combine %q: want left or right", side)
}

func (p *parser) bufferRange() (Buffer, Range, error) {
	b, err := ParseBuffer(p.word())
	if err != nil {
		return 0, Range{}, err
	}
	w := p.word()
	lo, hi, ok := strings.Cut(w, "..")
	r := Range{}
	var errLo, errHi error
	r.Lo, errLo = strconv.Atoi(lo)
	r.Hi, errHi = strconv.Atoi(hi)
	if !ok || errLo != nil || errHi != nil || r.Lo < 0 || r.Hi < r.Lo {
		return 0, Range{}, fmt.Errorf("%q: want a range of blocks like 0..4", w)
	}
	return b, r, nil
}

// finish gives the schedule its programs.
func (p *parser) finish() (*Schedule, error) {
	programs := make(map[int]Program, len(p.programs))
	for rank, b := range p.programs {
		programs[rank] = b.Program()
	}
	p.s.Make = func(_ *Builder, rank int) Program { return slices.Clip(programs[rank]) }
	if err := p.s.validateRead(); err != nil {
		return nil, fmt.Errorf("sched: %w", err)
	}
	return p.s, nil
}
