package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A HostsProfile is what a profile has of several hosts beside what each of them takes. It is
// empty if one machine alone was measured.
type HostsProfile struct {
	// Hosts are the names by which the hosts were reached. The profile's Node and Links
	// are those of the first one that is not among OtherHosts, which differ from it.
	Hosts      []string    `json:"hosts,omitempty"`
	OtherHosts []HostClass `json:"otherHosts,omitempty"`
	// HostLinks are the links between hosts, those of the most pairs first.
	HostLinks []HostLink `json:"hostLinks,omitempty"`
}

// A HostClass is hosts that take the same, within what measuring tells: what the first of
// them takes.
type HostClass struct {
	Hosts []string `json:"hosts"`
	Node  Node     `json:"node"`
	Links []Link   `json:"links"`
}

// A HostLink is the link between two ranks on different hosts, for the pairs of hosts where it
// is the same, within what measuring tells. Its Switch is 0.
type HostLink struct {
	Pairs    []HostPair `json:"pairs"`    // where a short and a long message were measured
	Measured []HostPair `json:"measured"` // those of Pairs where the numbers of the link come from
	Link
}

// A HostPair is two hosts. Its text is their names with a space between them.
type HostPair [2]string

func (p HostPair) String() string { return p[0] + " " + p[1] }

// MarshalText returns the pair's text.
func (p HostPair) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a pair's text.
func (p *HostPair) UnmarshalText(text []byte) error {
	names := strings.Split(string(text), " ")
	if len(names) != 2 || names[0] == "" || names[1] == "" {
		return fmt.Errorf("hosts %q: want two names with a space between them", text)
	}
	copy(p[:], names)
	return nil
}

// validate returns what is wrong with what a profile has of several hosts.
func (h *HostsProfile) validate() error {
	known := func(names ...string) error {
		for _, name := range names {
			if !slices.Contains(h.Hosts, name) {
				return fmt.Errorf("host %q: want one of the profile's hosts %s", name, strings.Join(h.Hosts, ", "))
			}
		}
		return nil
	}
	for i := range h.OtherHosts {
		c := &h.OtherHosts[i]
		if err := cmp.Or(known(c.Hosts...), validHost(&c.Node, c.Links)); err != nil {
			return fmt.Errorf("other hosts: %w", err)
		}
	}
	for i := range h.HostLinks {
		l := &h.HostLinks[i]
		for _, p := range slices.Concat(l.Pairs, l.Measured) {
			if err := known(p[:]...); err != nil {
				return fmt.Errorf("between hosts: %w", err)
			}
		}
		if err := l.Link.validate(); err != nil {
			return fmt.Errorf("between hosts: %w", err)
		}
	}
	return nil
}
