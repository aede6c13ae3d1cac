package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// A Candidate is an address of this host.
type Candidate struct {
	Interface string
	Address   netip.Addr

	// Reason says why the address was rejected, or why it comes after others. It is
	// empty for the address of a network that other hosts are likely to be in.
	Reason string

	class class
	rank  int // of the pattern that it matches
}

// A Selection says at which addresses other hosts may reach this one.
type Selection struct {
	Chosen   []Candidate // at least one, best first
	Rejected []Candidate

	named bool // the user has named the addresses
}

// Candidates selects among the addresses of this host.
//
// Patterns are the value of [Variable]: a comma-separated list of names of interfaces,
// which may have stars, of addresses, and of networks as 10.1.0.0/16. What they name is
// chosen, in their order. A pattern behind ^ excludes what it names. A list that only
// excludes, or that is empty, leaves the choice to Candidates: IPv4 addresses of
// interfaces that are up, then IPv6 addresses, then those of bridges and tunnels. A
// loopback address is chosen if no other is left. It is an error if none is left at all.
func Candidates(patterns string) (Selection, error) {
	interfaces, err := Interfaces()
	if err != nil {
		return Selection{}, err
	}
	return Select(interfaces, patterns)
}

// Select is [Candidates] for the interfaces of any host.
func Select(interfaces []Interface, patterns string) (s Selection, err error) {
	p, err := parsePatterns(patterns)
	if err != nil {
		return s, err
	}
	s.named = len(p.wanted) > 0
	most := indirect // the last class that is chosen
	if s.named {
		most = loopback
	}
	for n := range interfaces {
		i := &interfaces[n]
		for _, a := range i.Addresses {
			c := Candidate{Interface: i.Name, Address: a}
			c.class, c.Reason = i.classOf(a)
			rank, unfit := p.rank(i.Name, a)
			if c.rank = rank; unfit != "" {
				c.Reason = unfit
			}
			if unfit != "" || c.class > most {
				s.Rejected = append(s.Rejected, c)
			} else {
				s.Chosen = append(s.Chosen, c)
			}
		}
	}
	if len(s.Chosen) == 0 {
		s.chooseLoopback(&p)
	}
	switch {
	case len(s.Chosen) > 0:
	case p.text != "":
		return s, fmt.Errorf("%s=%s: no address of this host is left: it has %s", Variable, p.text, list(interfaces))
	default:
		return s, fmt.Errorf("this host has no address at which to listen: it has %s", list(interfaces))
	}
	slices.SortStableFunc(s.Chosen, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.class, b.class))
	})
	return s, nil
}

// chooseLoopback chooses the loopback addresses that are not excluded.
func (s *Selection) chooseLoopback(p *patterns) {
	s.Rejected = slices.DeleteFunc(s.Rejected, func(c Candidate) bool {
		_, unfit := p.rank(c.Interface, c.Address)
		chosen := c.class == loopback && unfit == ""
		if chosen {
			s.Chosen = append(s.Chosen, c)
		}
		return chosen
	})
}

// Addresses returns the chosen addresses, best first.
func (s Selection) Addresses() []netip.Addr {
	all := make([]netip.Addr, len(s.Chosen))
	for i, c := range s.Chosen {
		all[i] = c.Address
	}
	return all
}

// Advertise returns the addresses that a process publishes which has a connection to
// another process of the job from a local address. Unless the user has named addresses,
// it is the local address alone, if it is one of a network that other hosts are likely to
// be in: there is a route from there to others. Another one, as that of a tunnel, comes
// before those that are chosen. A loopback address says only that the other process is on
// this host.
func (s Selection) Advertise(local netip.Addr) []netip.Addr {
	local = local.Unmap()
	if s.named || !local.IsValid() || local.IsLoopback() || local.Is6() && local.IsLinkLocalUnicast() {
		return s.Addresses()
	}
	best := func(c Candidate) bool { return c.Address == local && c.class <= directIPv6 }
	if slices.ContainsFunc(s.Chosen, best) {
		return []netip.Addr{local}
	}
	if slices.ContainsFunc(s.Rejected, func(c Candidate) bool { return c.Address == local && c.class != linkLocal }) {
		return s.Addresses() // the user has excluded it
	}
	others := slices.DeleteFunc(s.Addresses(), func(a netip.Addr) bool { return a == local })
	return append([]netip.Addr{local}, others...)
}
