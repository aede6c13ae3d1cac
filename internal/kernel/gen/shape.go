package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	// unroll is how many registers the inner loops combine in each turn.
	unroll = 4

	// far is the length in bytes from which two vectors do not fit the first
	// cache, and ahead how far the loop then fetches. It gains a fifth at 64 KiB
	// and beyond, and would lose a sixth at 4 KiB. Wider registers gained no
	// more.
	far   = 16 << 10
	ahead = 384

	line = 64
)

// vectors are the operands of a kernel while it runs.
type vectors struct {
	dst, a, b reg.Register
	n         reg.Register // length in bytes
	i         reg.Register // where the loops are
	last      reg.Register // where the last register's worth begins
	distant   reg.Register // the operand to fetch: the other may be dst
}

// generate writes one kernel.
//
// The first and the last register's worth are combined before anything is
// stored, and stored after everything else: so the loops between may begin
// where dst is aligned, and run into the last, also in place. A short vector
// is combined as a first and a last part that may overlap, too.
func (k kernel) generate(name string) {
	TEXT(name, NOSPLIT, "func(dst, a, b *byte, n int)")
	Pragma("noescape")
	v := vectors{
		dst: Load(Param("dst"), GP64()),
		a:   Load(Param("a"), GP64()),
		b:   Load(Param("b"), GP64()),
		n:   Load(Param("n"), GP64()),
	}
	if k.elem > 1 {
		ANDQ(I8(-k.elem), v.n)
	}
	CMPQ(v.n, U8(wide))
	JB(LabelRef("short"))
	k.long(v)
	Label("short")
	k.short(v)
}

// long is for a wide register's worth or more.
func (k kernel) long(v vectors) {
	c := k.combine.constants(wide)
	v.i, v.last, v.distant = GP64(), GP64(), GP64()
	LEAQ(Mem{Base: v.n, Disp: -int(wide)}, v.last)
	head := k.combine.do(wide, c, load(Mem{Base: v.a}), load(Mem{Base: v.b}))
	tail := k.combine.do(wide, c, load(at(v.a, v.last, 0)), load(at(v.b, v.last, 0)))
	CMPQ(v.n, U8(2*wide))
	JBE(LabelRef("ends"))

	// The loops begin where dst is aligned, if whole elements lead there.
	XORQ(v.i, v.i)
	SUBQ(v.dst, v.i)
	ANDQ(U8(int(wide)-k.elem), v.i)
	CMPQ(v.n, U32(far))
	JB(LabelRef("near"))
	MOVQ(v.b, v.distant)
	CMPQ(v.b, v.dst)
	CMOVQEQ(v.a, v.distant)
	k.loop("far_loop", unroll, true, v, c)
	Label("near")
	k.loop("near_loop", unroll, false, v, c)
	k.loop("single_loop", 1, false, v, c)

	Label("ends")
	VMOVUPS(head, Mem{Base: v.dst})
	VMOVUPS(tail, at(v.dst, v.last, 0))
	VZEROUPPER()
	RET()
}

// loop combines n registers at a time, as long as they end before dst does.
func (k kernel) loop(label string, n int, fetch bool, v vectors, c vec) {
	end := v.last
	if n > 1 {
		end = GP64()
		LEAQ(Mem{Base: v.last, Disp: -(n - 1) * int(wide)}, end)
	}
	JMP(LabelRef(label + "_test"))
	Label(label)
	if fetch {
		for disp := 0; disp < n*int(wide); disp += line {
			PREFETCHT0(at(v.distant, v.i, ahead+disp))
		}
	}
	for j := range n {
		disp := j * int(wide)
		r := k.combine.do(wide, c, load(at(v.a, v.i, disp)), load(at(v.b, v.i, disp)))
		VMOVUPS(r, at(v.dst, v.i, disp))
	}
	ADDQ(U8(n*int(wide)), v.i)
	Label(label + "_test")
	CMPQ(v.i, end)
	JLT(LabelRef(label))
}

func load(m Mem) vec {
	r := wide.register()
	VMOVUPS(m, r)
	return r
}

func at(base, index reg.Register, disp int) Mem {
	return Mem{Base: base, Index: index, Scale: 1, Disp: disp}
}

// short is for less than a wide register's worth.
func (k kernel) short(v vectors) {
	c := k.combine.constants(narrow)
	for _, p := range parts {
		if p.size < k.elem {
			break
		}
		under := fmt.Sprintf("under_%d", p.size)
		CMPQ(v.n, U8(p.size))
		JB(LabelRef(under))
		k.ends(p, v, c)
		if k.combine.widens {
			VZEROUPPER()
		}
		RET()
		Label(under)
	}
	RET()
}

// ends combines the first and the last p.size bytes: in one register if both
// fit.
func (k kernel) ends(p part, v vectors, c vec) {
	first := func(base reg.Register) Mem { return Mem{Base: base} }
	last := func(base reg.Register) Mem { return at(base, v.n, -p.size) }
	a, b := p.load(first(v.a)), p.load(first(v.b))
	switch {
	case p.size == k.elem: // the last is the first
		p.store(k.combine.do(narrow, c, a, b), first(v.dst))
	case p.join == nil:
		x, y := p.load(last(v.a)), p.load(last(v.b))
		p.store(k.combine.do(narrow, c, a, b), first(v.dst))
		p.store(k.combine.do(narrow, c, x, y), last(v.dst))
	default:
		p.join(last(v.a), a)
		p.join(last(v.b), b)
		r := k.combine.do(narrow, c, a, b)
		p.store(r, first(v.dst))
		p.split(r, last(v.dst))
	}
}

// A part is what a short vector moves by.
type part struct {
	size  int
	load  func(m Mem) vec
	store func(r vec, m Mem)
	join  func(m Mem, r vec) // loads another part beside the first
	split func(r vec, m Mem) // stores it
}

var parts = []part{
	{
		size:  16,
		load:  func(m Mem) vec { r := XMM(); VMOVUPS(m, r); return r },
		store: func(r vec, m Mem) { VMOVUPS(r.AsX(), m) },
	}, {
		size:  8,
		load:  func(m Mem) vec { r := XMM(); VMOVQ(m, r); return r },
		store: func(r vec, m Mem) { VMOVQ(r.AsX(), m) },
		join:  func(m Mem, r vec) { VMOVHPS(m, r, r) },
		split: func(r vec, m Mem) { VMOVHPS(r.AsX(), m) },
	}, {
		size:  4,
		load:  func(m Mem) vec { r := XMM(); VMOVD(m, r); return r },
		store: func(r vec, m Mem) { VMOVD(r.AsX(), m) },
		join:  func(m Mem, r vec) { VPINSRD(U8(1), m, r, r) },
		split: func(r vec, m Mem) { VPEXTRD(U8(1), r.AsX(), m) },
	}, {
		size:  2,
		load:  func(m Mem) vec { g, r := GP32(), XMM(); MOVWLZX(m, g); VMOVD(g, r); return r },
		store: func(r vec, m Mem) { VPEXTRW(U8(0), r.AsX(), m) },
		join:  func(m Mem, r vec) { VPINSRW(U8(1), m, r, r) },
		split: func(r vec, m Mem) { VPEXTRW(U8(1), r.AsX(), m) },
	}, {
		size:  1,
		load:  func(m Mem) vec { g, r := GP32(), XMM(); MOVBLZX(m, g); VMOVD(g, r); return r },
		store: func(r vec, m Mem) { VPEXTRB(U8(0), r.AsX(), m) },
	},
}
