package sched

// A Builder puts a program together, step by step:
//
//	var b sched.Builder
//	b.Copy(sched.In, all, sched.Out, 0, sched.Replace)
//	b.Send(sched.Out, all, 4)
//	b.EndStep()
//	return b.Program()
//
// A Builder keeps its memory when a program is done, and the next program
// overwrites it. If a Builder builds many programs, one after another, it soon
// allocates nothing. The zero value is ready to use.
type Builder struct {
	copies []Copy
	sends  []Send
	recvs  []Recv
	to     []int // the ranks of the sends, one send after another
	ends   []mark

	program Program // the last one,
	made    []mark  // the ends of its steps,
	room    mark    // and the capacities of the lists that it is cut from
}

// A mark is the lengths of the slices when a step ended.
type mark struct{ copies, sends, recvs int }

// Copy adds a copy within the rank to the current step. A copy of nothing, or
// of blocks onto themselves, is left out.
func (b *Builder) Copy(src Buffer, blocks Range, dst Buffer, at int, how Combine) {
	if blocks.Len() <= 0 || src == dst && at == blocks.Lo && how == Replace {
		return
	}
	b.copies = append(b.copies, Copy{src, blocks, dst, at, how})
}

// Send adds a send to the current step, to one rank or several. A send to no
// rank is left out.
func (b *Builder) Send(src Buffer, blocks Range, to ...int) {
	if len(to) == 0 {
		return
	}
	n := len(b.to)
	b.to = append(b.to, to...)
	b.sends = append(b.sends, Send{b.to[n:len(b.to):len(b.to)], src, blocks})
}

// Recv adds a receive to the current step.
func (b *Builder) Recv(from int, dst Buffer, blocks Range, how Combine) {
	b.recvs = append(b.recvs, Recv{from, dst, blocks, how})
}

// EndStep ends the current step. A step without operations is left out.
func (b *Builder) EndStep() {
	m := mark{len(b.copies), len(b.sends), len(b.recvs)}
	if m != b.last() {
		b.ends = append(b.ends, m)
	}
}

func (b *Builder) last() mark {
	if len(b.ends) == 0 {
		return mark{}
	}
	return b.ends[len(b.ends)-1]
}

// Program ends the current step and returns the program, which is valid until
// the builder's next use: that begins the next program.
func (b *Builder) Program() Program {
	b.EndStep()
	same := b.sameSteps()
	var from mark
	if same > 0 {
		from = b.ends[same-1]
	}
	b.program = b.program[:same]
	for _, end := range b.ends[same:] {
		b.program = append(b.program, Step{
			Copies: cut(b.copies, from.copies, end.copies),
			Sends:  cut(b.sends, from.sends, end.sends),
			Recvs:  cut(b.recvs, from.recvs, end.recvs),
		})
		from = end
	}
	b.ends, b.made = b.made[:0], b.ends
	b.copies, b.sends, b.recvs, b.to = b.copies[:0], b.sends[:0], b.recvs[:0], b.to[:0]
	return b.program
}

// sameSteps returns the number of steps that are cut from the lists as in the last
// program: all of them, where the ranks of a schedule do alike.
func (b *Builder) sameSteps() (n int) {
	room := mark{cap(b.copies), cap(b.sends), cap(b.recvs)}
	if room != b.room {
		b.room = room
		return 0 // a list has moved
	}
	for n < min(len(b.ends), len(b.made)) && b.ends[n] == b.made[n] {
		n++
	}
	return n
}

// cut returns s[from:to], or nil when that is empty, so that equal programs
// compare equal however they were made.
func cut[T any](s []T, from, to int) []T {
	if from == to {
		return nil
	}
	return s[from:to:to]
}
