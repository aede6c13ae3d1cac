package exec

import (
	"slices"

	"github.com/chorale-go/chorale/sched"
)

// readsWrittenInput reports whether the program reads a block of In after it may
// have written that block in Out. If not, In and Out may be the same memory. A copy
// of a block of In to the same block of Out changes nothing there.
func readsWrittenInput(program sched.Program) bool {
	var written []sched.Range
	overlapped := func(r sched.Range) bool { return slices.ContainsFunc(written, r.Overlaps) }
	for _, st := range program {
		for _, c := range st.Copies {
			if c.Src == sched.In && overlapped(c.Blocks) {
				return true
			}
			if c.Dst == sched.Out && !(c.Src == sched.In && c.Blocks == c.Into() && c.How == sched.Replace) {
				written = append(written, c.Into())
			}
		}
		for _, r := range st.Recvs {
			if r.Dst == sched.Out {
				written = appendRange(written, r.Blocks)
			}
		}
		for _, send := range st.Sends {
			if send.Src == sched.In && overlapped(send.Blocks) {
				return true
			}
		}
		for k, r := range st.Recvs {
			i := st.FusibleCopy(k)
			if i < 0 || st.Copies[i].Src != sched.In {
				continue
			}
			if c := st.Copies[i]; (c.Dst != sched.Out || c.Blocks != r.Blocks) && overlapped(c.Blocks) {
				return true
			}
		}
	}
	return false
}

// appendRange adds r to ranges, or to the last one if the two touch: most programs
// write one block after the other.
func appendRange(ranges []sched.Range, r sched.Range) []sched.Range {
	if n := len(ranges); n > 0 {
		last := &ranges[n-1]
		if r.Lo <= last.Hi && last.Lo <= r.Hi {
			*last = sched.Range{Lo: min(last.Lo, r.Lo), Hi: max(last.Hi, r.Hi)}
			return ranges
		}
	}
	return append(ranges, r)
}
