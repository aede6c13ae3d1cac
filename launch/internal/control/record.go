package control

import "slices"

const (
	// recordPart is how many bytes of a record one message has: in base64 they are within
	// MaxMessage.
	recordPart = 8 << 10
	// maxProfile is how many bytes of a profile the launcher keeps of a rank. A longer one is
	// dropped.
	maxProfile = 1 << 20
	// MaxTrace is the same for a timeline.
	MaxTrace = 64 << 20
)

// ReportProfile sends the launcher what this rank has recorded of its calls.
func (c *Client) ReportProfile(record []byte) {
	for part := range slices.Chunk(record, recordPart) {
		c.report(message{Profile: part})
	}
}

// ReportTrace sends the launcher the timeline that this rank has recorded.
func (c *Client) ReportTrace(record []byte) {
	for part := range slices.Chunk(record, recordPart) {
		c.report(message{Trace: part})
	}
}

// ReportMetrics sends the launcher the sums of this rank's calls, a JSON object. One that is
// longer than a message may be is dropped.
func (c *Client) ReportMetrics(totals []byte) {
	if len(totals)+len(`{"metrics":}`) < MaxMessage {
		c.report(message{Metrics: totals})
	}
}

// A record is what a rank has sent of one kind.
type record struct {
	bytes   []byte
	dropped bool // it was too long
}

// add adds a part of a record of so many bytes at most.
func (r *record) add(part []byte, most int) {
	if len(r.bytes)+len(part) > most {
		r.bytes, r.dropped = nil, true
	}
	if !r.dropped {
		r.bytes = append(r.bytes, part...)
	}
}

// Profiles returns what ranks have recorded, by rank; nil for one that has sent nothing.
func (c *Server) Profiles() [][]byte {
	return c.records(func(m *member) []byte { return m.profile.bytes })
}

// Traces is the same for the timelines.
func (c *Server) Traces() [][]byte {
	return c.records(func(m *member) []byte { return m.trace.bytes })
}

func (c *Server) records(of func(*member) []byte) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([][]byte, len(c.members))
	for rank := range c.members {
		all[rank] = of(&c.members[rank])
	}
	return all
}
