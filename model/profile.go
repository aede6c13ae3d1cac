package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ProfileVersion is the version of the profiles that this package reads and writes. A
// change of what a field means is a new version.
const ProfileVersion = 1

// A Profile is what the machine takes: a [Link] for each way that its ranks exchange
// messages, and what a [Node] does beside them. Times are in microseconds. The command
// chorale tune measures it. If it has measured several hosts, Node and Links are those of
// one of them, and [Profile.Between] is what connects them.
type Profile struct {
	Version int    `json:"version"`
	Node    Node   `json:"node"`
	Links   []Link `json:"links"`
	HostsProfile
	// Selections are what chorale tune --select has found: one for each transport at most.
	Selections []Selection `json:"selections,omitempty"`
}

// A Link is the cost of messages over one transport, between two ranks that have a
// processor each unless a field says otherwise.
type Link struct {
	Transport string `json:"transport"`
	Origin    Origin `json:"origin"`

	// OneWay is the time of a message from the step that sends it to its arrival, and
	// Exchange that of two messages that cross each other, in both cases without Call
	// and Step.
	OneWay   Curve `json:"oneWay"`
	Exchange Curve `json:"exchange"`

	// Send and Receive are what a message takes of the processor of its sender, and of its
	// receiver. A message of RendezvousFrom bytes or more waits for its receiver, and a
	// shorter one leaves when its sender is ready. Profiles without them have no curves.
	Send           Curve `json:"send,omitempty"`
	Receive        Curve `json:"receive,omitempty"`
	RendezvousFrom int   `json:"rendezvousFrom,omitempty"`
	// Capacity is how many of these shorter ones may be under way from one rank to another:
	// the next waits until the receiver has taken one. It is 0 where nothing but bytes counts.
	Capacity int `json:"capacity,omitempty"`

	Gap    Estimate `json:"gap"`    // per message of 8 bytes that a rank issues after another one
	Call   Estimate `json:"call"`   // of a collective, per rank, whatever it does
	Step   Estimate `json:"step"`   // per step of a rank, beside its messages
	Switch Estimate `json:"switch"` // of a processor to another one of its ranks
}

// A Node is the cost of what ranks do without messages.
type Node struct {
	Origin     Origin      `json:"origin"`
	Processors int         `json:"processors"` // that ranks may use at a time
	Copy       Curve       `json:"copy"`       // from one buffer to another
	Combine    []Combining `json:"combine"`
	Memory     []Bandwidth `json:"memory"` // by number of movers, in order
	// MemoryFrom is the number of bytes from which movers share the memory: fewer fit a
	// processor's own caches.
	MemoryFrom int `json:"memoryFrom"`
}

// Combining is the time in which an operation makes a third vector of two.
type Combining struct {
	Op    string `json:"op"`    // sum, prod or max
	Type  string `json:"type"`  // of an element, as in Go
	Bytes int    `json:"bytes"` // of an element
	Curve Curve  `json:"curve"`
}

// A Bandwidth is what the memory gives to processors that copy at the same time.
type Bandwidth struct {
	Movers int      `json:"movers"`
	Rate   Estimate `json:"rate"` // bytes copied per µs, by all together
}

// An Origin says when, where and by what something was measured, and whether the machine
// was quiet meanwhile.
type Origin struct {
	Made    time.Time `json:"made"`
	Host    string    `json:"host"`
	System  string    `json:"system"`
	Command string    `json:"command"` // the version of chorale

	Quiet  bool     `json:"quiet"`
	Load   *float64 `json:"load"`   // processes that wanted to run before; nil if unknown
	Steal  *float64 `json:"steal"`  // the part of the time that the machine gave to other virtual machines; nil if unknown
	Spread float64  `json:"spread"` // the median difference of repeated medians, relative
}

// Link returns the link of a transport. An error names those that the profile has.
func (p *Profile) Link(transport string) (Link, error) {
	var known []string
	for _, l := range p.Links {
		if l.Transport == transport {
			return l, nil
		}
		known = append(known, l.Transport)
	}
	return Link{}, fmt.Errorf("the profile has no transport %s: want %s, or chorale tune --transport %s", transport, strings.Join(known, " or "), transport)
}

// Between returns the link between ranks of different hosts. If pairs of hosts differ, it is
// that of the most pairs.
func (p *Profile) Between() (Link, error) {
	if len(p.HostLinks) == 0 {
		return Link{}, fmt.Errorf("the profile has no link between hosts: want chorale tune --hosts A,B")
	}
	return p.HostLinks[0].Link, nil
}

// SetLink adds a link to the profile, or replaces that of the same transport.
func (p *Profile) SetLink(l Link) {
	for i := range p.Links {
		if p.Links[i].Transport == l.Transport {
			p.Links[i] = l
			return
		}
	}
	p.Links = append(p.Links, l)
}

// Combining returns the time by which combining some bytes takes longer than copying them:
// a transport combines a message from where it would copy it. It is that of the first type
// in the list whose elements have the size given, and 0 if there is none.
func (n *Node) Combining(elementBytes int, bytes float64) float64 {
	for _, c := range n.Combine {
		if c.Bytes == elementBytes {
			return max(0, c.Curve.Time(bytes)-n.Copy.Time(bytes))
		}
	}
	return 0
}

// Bandwidth returns the bytes that all movers together copy per µs, at most; 0 if that is
// unknown.
func (n *Node) Bandwidth() (rate float64) {
	for _, b := range n.Memory {
		rate = max(rate, b.Rate.Value)
	}
	return rate
}

// Write writes the profile as JSON, for people to read.
func (p *Profile) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(p)
}

// ParseProfile reads what [Profile.Write] has written. It refuses a profile of another
// version, fields that it does not know, and numbers that are no costs.
func ParseProfile(text []byte) (*Profile, error) {
	var head struct {
		Version *int `json:"version"`
	}
	switch err := json.Unmarshal(text, &head); {
	case err != nil:
		return nil, fmt.Errorf("not a profile: %w", err)
	case head.Version == nil:
		return nil, fmt.Errorf("not a profile: it has no version")
	case *head.Version != ProfileVersion:
		return nil, fmt.Errorf("a profile of version %d: want version %d: chorale tune makes one", *head.Version, ProfileVersion)
	}
	p := new(Profile)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("not a profile: %w", err)
	}
	return p, p.validate()
}

// validate returns what is wrong with a profile.
func (p *Profile) validate() error {
	if err := validHost(&p.Node, p.Links); err != nil {
		return err
	}
	for i := range p.Selections {
		s := &p.Selections[i]
		if err := s.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(p.Selections[:i], func(o Selection) bool { return o.Transport == s.Transport }) {
			return fmt.Errorf("two selections for %s: want one", s.Transport)
		}
	}
	return p.HostsProfile.validate()
}

// validHost returns what is wrong with a host, and with the links within it.
func validHost(n *Node, links []Link) error {
	if n.Processors < 1 {
		return fmt.Errorf("%d processors: want 1 or more", n.Processors)
	}
	if err := validCurve("copy", n.Copy); err != nil {
		return err
	}
	for _, c := range n.Combine {
		if err := validCurve("combine "+c.Type, c.Curve); err != nil {
			return err
		}
	}
	for _, b := range n.Memory {
		if err := positive("memory", b.Rate); err != nil {
			return err
		}
	}
	for _, l := range links {
		if err := l.validate(); err != nil {
			return err
		}
	}
	return nil
}

// validate returns what is wrong with a link.
func (l *Link) validate() error {
	if err := validCurve(l.Transport+": one way", l.OneWay); err != nil {
		return err
	}
	if err := validCurve(l.Transport+": exchange", l.Exchange); err != nil {
		return err
	}
	if err := validCurve(l.Transport+": send", l.Send); err != nil {
		return err
	}
	if err := validCurve(l.Transport+": receive", l.Receive); err != nil {
		return err
	}
	if (len(l.Send) == 0) != (len(l.Receive) == 0) {
		return fmt.Errorf("%s: one of send and receive: want both, or none", l.Transport)
	}
	if l.RendezvousFrom < 0 {
		return fmt.Errorf("%s: a rendezvous from %d bytes: want 0 or more", l.Transport, l.RendezvousFrom)
	}
	if l.Capacity < 0 {
		return fmt.Errorf("%s: a capacity of %d messages: want 0 or more", l.Transport, l.Capacity)
	}
	return positive(l.Transport, l.Gap, l.Call, l.Step, l.Switch)
}

func validCurve(what string, c Curve) error {
	if err := c.validate(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func positive(what string, all ...Estimate) error {
	for _, e := range all {
		if !finite(e) || e.Value < 0 {
			return fmt.Errorf("%s: %v: want a number, 0 or more", what, e.Value)
		}
	}
	return nil
}
