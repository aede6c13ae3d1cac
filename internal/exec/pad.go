package exec

// A padding stands between the caller's parts and longer ones, which schedules
// need that work only where all blocks are equally long.
type padding struct {
	part, gap, elem int    // bytes of the caller's part, bytes that the longer one has more, bytes per element
	in, out         []byte // the longer parts
}

func (p *padding) set(l Layout) {
	if l.gap > 0 {
		p.elem, p.gap = l.elem, l.gap*l.elem
		p.part = (l.starts[1] - l.starts[0] - l.gap) * l.elem
	}
}

// narrow returns how many of the caller's bytes there are to so many of the
// longer ones, which begin and end with a part.
func (p *padding) narrow(n int) int {
	if p.gap == 0 {
		return n
	}
	return n / (p.part + p.gap) * p.part
}

// widen copies parts to longer ones. The last element fills the gap: it is one
// that an operation can stand.
func (p *padding) widen(wide, parts []byte) []byte {
	if wide == nil {
		wide = allocate(len(parts) / p.part * (p.part + p.gap))
	}
	for i := 0; i*p.part < len(parts); i++ {
		long := wide[i*(p.part+p.gap) : (i+1)*(p.part+p.gap)]
		copy(long, parts[i*p.part:(i+1)*p.part])
		for at := p.part; at < len(long); at += p.elem {
			copy(long[at:], long[p.part-p.elem:p.part])
		}
	}
	return wide
}

// shorten is the inverse of widen.
func (p *padding) shorten(parts, wide []byte) {
	for i := 0; i*p.part < len(parts); i++ {
		copy(parts[i*p.part:(i+1)*p.part], wide[i*(p.part+p.gap):])
	}
}
