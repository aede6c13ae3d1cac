package exec

// A padding converts between the caller's parts and padded parts. Some schedules
// need blocks of equal length, and so a part length that is a multiple of the number
// of blocks per part.
type padding struct {
	part        int // bytes of the caller's part
	gap         int // bytes that a padded part has more; 0 if nothing is padded
	elem        int // bytes per element
	inAt, outAt int // where the padded copies of the caller's memory begin
}

func newPadding(l Layout) padding {
	gap := l.partition.Padding()
	if gap == 0 {
		return padding{}
	}
	return padding{part: l.count * l.elem, gap: gap * l.elem, elem: l.elem}
}

// unpaddedLen returns how many of the caller's bytes correspond to n bytes of whole
// padded parts.
func (p *padding) unpaddedLen(n int) int {
	if p.gap == 0 {
		return n
	}
	return n / (p.part + p.gap) * p.part
}

// pad copies parts to padded ones. Each gap holds copies of the last element of its
// part, because an operation is defined for it.
func (p *padding) pad(padded, parts []byte) {
	for i := 0; i*p.part < len(parts); i++ {
		long := padded[i*(p.part+p.gap) : (i+1)*(p.part+p.gap)]
		copy(long, parts[i*p.part:(i+1)*p.part])
		for at := p.part; at < len(long); at += p.elem {
			copy(long[at:], long[p.part-p.elem:p.part])
		}
	}
}

// unpad is the inverse of pad.
func (p *padding) unpad(parts, padded []byte) {
	for i := 0; i*p.part < len(parts); i++ {
		copy(parts[i*p.part:(i+1)*p.part], padded[i*(p.part+p.gap):])
	}
}
