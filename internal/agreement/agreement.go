// Package agreement decides on one value among members of which any may be lost.
//
// It is uniform consensus with a perfect failure detector: members that are lost stay
// lost, and every loss is noticed by every member that stays, sooner or later. All members
// that decide, also those that are lost afterwards, decide on the same value; every member
// that stays decides; and the value combines the contributions of all members that were
// not known as lost when it was proposed.
//
// The coordinator is the lowest member that is not lost.
//
//	join     everyone → coordinator   my contribution, and what I have accepted before
//	propose  coordinator → everyone   what somebody has accepted before, or else all
//	                                  contributions, combined
//	accept   everyone → coordinator   from here on I tell later coordinators of it
//	decide   everyone → everyone      as all that are left have accepted
//
// When the coordinator is lost, all join the next one. A value that somebody has decided on
// was accepted by all that are left, so that the next coordinator hears of it and proposes
// it again. Nobody that is left has accepted another one: a coordinator proposes when all
// that are left have joined it, and from then on they ignore what lost ones have proposed.
// Who decides tells everybody before it returns: whoever has not decided by then
// need not be answered later, while this member computes.
//
// Without losses that takes four rounds of messages, and p² messages because of the last.
// The protocol is that of Chandra and Toueg (Unreliable Failure Detectors for Reliable
// Distributed Systems, 1996), with all members for a majority, as the detector is perfect.
package agreement

import "slices"

// A Kind is what a message says.
type Kind uint8

const (
	Join Kind = iota
	Propose
	Accept
	Decide
)

// A Message is what one member tells another. Value is that of the kind: a contribution,
// or what the sender has accepted; a proposal; a decision. Messages of one member to
// another arrive in the order in which they were sent, or not at all if the sender is lost.
type Message struct {
	Kind     Kind
	Accepted bool // of Join: the sender has accepted Value
	Value    Value
	Lost     []int // members that the sender knows as lost, in ascending order
}

// A Value is what members contribute and decide on.
type Value struct {
	Flags  uint64 // of all contributions, the bits that are set in each
	Number uint32 // the highest of all contributions
	Lost   []int  // the members whose contributions are not in it, in ascending order
}

func (v Value) combine(w Value) Value {
	return Value{Flags: v.Flags & w.Flags, Number: max(v.Number, w.Number)}
}

// A Member is one member's part in an agreement. One goroutine at a time uses it.
type Member struct {
	self, size int
	send       func(to int, m Message)

	value       Value // contributed, accepted or decided on
	coordinator int   // that this member has joined; -1 at first
	accepted    bool
	decided     bool
	lost        []bool

	joined   map[int]Message // of this member as a coordinator, by sender
	proposed bool
	accepts  []bool
}

// New returns the part of a member, self of size. Send sends a message; it may be called
// by every method but Decided, and does not wait for the receiver.
func New(self, size int, contribution Value, send func(to int, m Message)) *Member {
	return &Member{
		self: self, size: size, send: send,
		value: contribution, coordinator: -1,
		lost: make([]bool, size), joined: make(map[int]Message), accepts: make([]bool, size),
	}
}

// Start begins the agreement, among all but members that are lost already. It is called
// once, and first.
func (m *Member) Start(lost ...int) {
	for _, member := range lost {
		m.noteLost(member)
	}
	m.advance()
}

// IsLost reports whether this member knows another as lost.
func (m *Member) IsLost(member int) bool { return m.lost[member] }

// Decided returns the value, once there is one.
func (m *Member) Decided() (Value, bool) { return m.value, m.decided }

// Awaited returns the members of which a message is needed before anything happens here, in
// ascending order: whether they are lost has to be noticed.
func (m *Member) Awaited() (members []int) {
	if m.decided {
		return nil
	}
	if m.coordinator != m.self {
		return []int{m.coordinator}
	}
	for i := range m.size {
		if m.missing(i) {
			members = append(members, i)
		}
	}
	return members
}

// Lose notes that a member is lost. Messages of it that arrive later are ignored.
func (m *Member) Lose(member int) {
	if m.noteLost(member) {
		m.advance()
	}
}

func (m *Member) noteLost(member int) (news bool) {
	news = !m.lost[member] && member != m.self
	m.lost[member] = m.lost[member] || news
	return news
}

// Receive takes a message.
func (m *Member) Receive(from int, message Message) {
	if m.decided || m.lost[from] {
		return
	}
	for _, member := range message.Lost {
		m.noteLost(member)
	}
	switch message.Kind {
	case Join:
		m.joined[from] = message
	case Propose: // of a coordinator that this member has joined: others are lost
		m.accept(message.Value)
	case Accept:
		m.accepts[from] = true
	case Decide:
		m.decide(message.Value)
	}
	m.advance()
}

// advance does what is due.
func (m *Member) advance() {
	if m.decided {
		return
	}
	m.join(slices.Index(m.lost, false))
	if m.coordinator != m.self || m.anyMissing() {
		return
	}
	if !m.proposed {
		m.proposed = true
		m.accept(m.proposal())
		m.toAll(Message{Kind: Propose, Value: m.value})
	}
	if !m.anyMissing() {
		m.decide(m.value)
	}
}

// join joins a coordinator, unless this member has.
func (m *Member) join(coordinator int) {
	if coordinator == m.coordinator {
		return
	}
	m.coordinator = coordinator
	join := Message{Kind: Join, Accepted: m.accepted, Value: m.value}
	if coordinator == m.self {
		m.joined[m.self] = join
	} else {
		m.tell(coordinator, join)
	}
}

// missing reports whether this member, the coordinator, waits for a message of another.
func (m *Member) missing(member int) bool {
	if m.lost[member] || member == m.self {
		return false
	}
	_, joined := m.joined[member]
	return !joined || m.proposed && !m.accepts[member]
}

func (m *Member) anyMissing() bool {
	for i := range m.size {
		if m.missing(i) {
			return true
		}
	}
	return false
}

// proposal returns what somebody has accepted, or else what all have contributed.
func (m *Member) proposal() Value {
	value := m.value
	for from, join := range m.joined {
		switch {
		case m.lost[from]:
		case join.Accepted:
			return join.Value
		default:
			value = value.combine(join.Value)
		}
	}
	value.Lost = m.lostMembers()
	return value
}

func (m *Member) accept(value Value) {
	m.accepted, m.value = true, value
	if m.coordinator != m.self {
		m.tell(m.coordinator, Message{Kind: Accept})
	}
}

func (m *Member) decide(value Value) {
	m.decided, m.value = true, value
	m.toAll(Message{Kind: Decide, Value: value})
}

func (m *Member) toAll(message Message) {
	for to := range m.size {
		if to != m.self && !m.lost[to] {
			m.tell(to, message)
		}
	}
}

func (m *Member) tell(to int, message Message) {
	message.Lost = m.lostMembers()
	m.send(to, message)
}

func (m *Member) lostMembers() (members []int) {
	for i, lost := range m.lost {
		if lost {
			members = append(members, i)
		}
	}
	return members
}
