package agreement

import (
	"encoding/binary"
	"errors"
)

// headerLen is how long a message is without its lists of members.
const headerLen = 1 + 1 + 8 + 4

// MaxLen returns how long a message among some members is at most.
func MaxLen(size int) int { return headerLen + 2*(binary.MaxVarintLen64+size) }

// Append appends a message in the form that Parse reads.
func (m *Message) Append(b []byte) []byte {
	accepted := byte(0)
	if m.Accepted {
		accepted = 1
	}
	b = append(b, byte(m.Kind), accepted)
	b = binary.LittleEndian.AppendUint64(b, m.Value.Flags)
	b = binary.LittleEndian.AppendUint32(b, m.Value.Number)
	return appendMembers(appendMembers(b, m.Value.Lost), m.Lost)
}

// errMessage is the error of bytes that are no message.
var errMessage = errors.New("no message of an agreement")

// Parse reads a message among some members.
func Parse(b []byte, size int) (m Message, err error) {
	if len(b) < headerLen || b[0] > byte(Decide) || b[1] > 1 {
		return Message{}, errMessage
	}
	m.Kind, m.Accepted = Kind(b[0]), b[1] == 1
	m.Value.Flags = binary.LittleEndian.Uint64(b[2:])
	m.Value.Number = binary.LittleEndian.Uint32(b[10:])
	b = b[headerLen:]
	if m.Value.Lost, b, err = parseMembers(b, size); err != nil {
		return Message{}, err
	}
	if m.Lost, b, err = parseMembers(b, size); err != nil || len(b) > 0 {
		return Message{}, errMessage
	}
	return m, nil
}

// appendMembers appends members in ascending order: their number, and how far each is from
// the one before. That takes a byte for each, and less than a byte more for each 128 between
// two of them.
func appendMembers(b []byte, members []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(members)))
	before := -1
	for _, member := range members {
		b = binary.AppendUvarint(b, uint64(member-before))
		before = member
	}
	return b
}

func parseMembers(b []byte, size int) (members []int, rest []byte, err error) {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			err = errMessage
			return 0
		}
		b = b[n:]
		return v
	}
	before := -1
	for range min(next(), uint64(size)) {
		step := next()
		if err != nil || step == 0 || step >= uint64(size-before) {
			return nil, nil, errMessage
		}
		before += int(step)
		members = append(members, before)
	}
	return members, b, err
}
