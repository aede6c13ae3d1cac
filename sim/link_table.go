package sim

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A linkTable is the use of directed links. Where a network has far more links
// than messages can cross, it lists only those that some message has crossed.
type linkTable struct {
	all  []linkState // per link; nil where the table lists them
	list []listedLink
	mask uint32
}

// A linkState is the use of one directed link. It has no float64, which would make
// it 16 bytes long rather than 12.
type linkState struct {
	bits [8]byte // of when the link is free again
	mark uint32  // the last round that requested it, and how: see contentionFree.request; 0 for none
}

func (l *linkState) free() (bits uint64) { return binary.LittleEndian.Uint64(l.bits[:]) }
func (l *linkState) freeAt() float64     { return math.Float64frombits(l.free()) }

func (l *linkState) setFreeAt(at float64) {
	binary.LittleEndian.PutUint64(l.bits[:], math.Float64bits(at))
}

// A listedLink has its place by a hash of its id, or the next free place. A place
// is free as long as its mark is 0.
type listedLink struct {
	linkState
	id int32
}

// newLinkTable returns the table of some links, which messages cross a number of
// times.
func newLinkTable(links, crossings int) linkTable {
	room := 1 << bits.Len(uint(crossings+crossings/4))
	if room > links/2 {
		return linkTable{all: makeList[linkState](links, links)}
	}
	return linkTable{list: makeList[listedLink](room, room), mask: uint32(room - 1)}
}

// at returns the state of a link. The caller sets its mark before it asks for
// another link.
func (t *linkTable) at(link int32) *linkState {
	if t.all != nil {
		return &t.all[link]
	}
	for i := uint32(link) * 0x9e3779b1 >> 7; ; i++ {
		l := &t.list[i&t.mask]
		if l.mark == 0 || l.id == link {
			l.id = link
			return &l.linkState
		}
	}
}
