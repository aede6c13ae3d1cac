package match

import "github.com/chorale-go/chorale/transport"

// searchMax is how many messages a search without an index looks at.
const searchMax = 32

// A list holds tagged messages in the order of their arrival.
type list struct{ first, last *link }

// A link is the place of a message in a list.
type link struct {
	message    *Tagged
	list       *list // nil: in none
	prev, next *link
}

// add adds a message at the end, by a link that is in no list.
func (s *list) add(l *link, m *Tagged) {
	*l = link{message: m, list: s, prev: s.last}
	if s.last == nil {
		s.first = l
	} else {
		s.last.next = l
	}
	s.last = l
}

// remove removes the link from its list.
func (l *link) remove() {
	if l.prev == nil {
		l.list.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		l.list.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	*l = link{}
}

// A taggedIndex holds the messages of a queue by each pattern that they match: with
// their source and tag, or any of either. So the number of messages that are queued
// makes no search longer.
type taggedIndex map[Pattern]*list

// patterns returns the patterns that a message matches.
func patterns(m *Tagged) [4]Pattern {
	exact := transport.Match{Context: m.Context, Tag: m.Tag}
	anyTag := transport.Match{Context: m.Context, Tag: transport.Any}
	return [4]Pattern{{m.From, exact}, {m.From, anyTag}, {transport.Any, exact}, {transport.Any, anyTag}}
}

func (x taggedIndex) add(m *Tagged) {
	m.indexed = new([4]link)
	for i, p := range patterns(m) {
		s := x[p]
		if s == nil {
			s = new(list)
			x[p] = s
		}
		s.add(&m.indexed[i], m)
	}
}

func (x taggedIndex) remove(m *Tagged) {
	for i, p := range patterns(m) {
		if m.indexed[i].remove(); x[p].first == nil {
			delete(x, p)
		}
	}
	m.indexed = nil
}

// first returns the first message that matches, or nil.
func (x taggedIndex) first(p *Pattern) *Tagged {
	if s := x[*p]; s != nil {
		return s.first.message
	}
	return nil
}
