package sched

// A Builder puts a program together, step by step. It keeps all steps in a few
// slices that grow together, so that a program of k steps takes O(log k)
// allocations.
//
//	var b sched.Builder
//	b.Copy(sched.In, all, sched.Out, 0, sched.Replace)
//	b.Send(sched.Out, all, 4)
//	b.EndStep()
//	return b.Program()
type Builder struct {
	copies []Copy
	sends  []Send
	recvs  []Recv
	to     []int
	ends   []mark
}

// mark says how far the slices reached when a step ended.
type mark struct{ copies, sends, recvs int }

// Grow makes room for about n steps of one message each way.
func (b *Builder) Grow(n int) {
	b.sends = make([]Send, 0, n)
	b.recvs = make([]Recv, 0, n)
	b.to = make([]int, 0, n)
	b.ends = make([]mark, 0, n)
}

// Copy adds a copy within the rank to the current step. A copy of nothing, or
// of blocks onto themselves, is left out.
func (b *Builder) Copy(src Buffer, blocks Range, dst Buffer, at int, how Combine) {
	if blocks.Len() <= 0 || src == dst && at == blocks.Lo && how == Replace {
		return
	}
	b.copies = append(b.copies, Copy{src, blocks, dst, at, how})
}

// Send adds a send to the current step, to one rank or several. A send to
// nobody is left out.
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

// EndStep ends the current step. A step with nothing in it leaves no trace.
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

// Program ends the current step and returns what was built.
func (b *Builder) Program() Program {
	b.EndStep()
	program := make(Program, len(b.ends))
	var from mark
	for i, to := range b.ends {
		program[i] = Step{
			Copies: cut(b.copies, from.copies, to.copies),
			Sends:  cut(b.sends, from.sends, to.sends),
			Recvs:  cut(b.recvs, from.recvs, to.recvs),
		}
		from = to
	}
	return program
}

// cut returns s[from:to], or nil when that is empty, so that programs compare
// equal whichever way they were made.
func cut[T any](s []T, from, to int) []T {
	if from == to {
		return nil
	}
	return s[from:to:to]
}
