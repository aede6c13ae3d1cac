package network

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// Variable is the environment variable with the patterns of [Candidates].
const Variable = "CHORALE_INTERFACE"

// A pattern matches addresses of this host: by the name of their interface, which may
// have stars, or by an address or a network that has them.
type pattern struct {
	name    string
	network netip.Prefix // if it is valid; then there is no name
}

// patterns say which addresses are wanted.
type patterns struct {
	text     string
	wanted   []pattern // none: all
	unwanted []pattern
}

// parsePatterns parses a comma-separated list.
func parsePatterns(text string) (p patterns, err error) {
	p.text = text
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, excludes := strings.CutPrefix(item, "^")
		switch one, err := parsePattern(name); {
		case err != nil:
			return p, fmt.Errorf("%s=%s: %w", Variable, text, err)
		case excludes:
			p.unwanted = append(p.unwanted, one)
		case len(p.wanted) == 0 && len(p.unwanted) > 0:
			// Elsewhere, a ^ at the start of a list excludes all of it.
			return p, fmt.Errorf("%s=%s: is %s wanted? Write ^%s to exclude it, or what is wanted before what is not", Variable, text, name, name)
		default:
			p.wanted = append(p.wanted, one)
		}
	}
	return p, nil
}

func parsePattern(text string) (pattern, error) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return pattern{network: network.Masked()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap().WithZone("")
		return pattern{network: netip.PrefixFrom(a, a.BitLen())}, nil
	}
	if _, err := path.Match(text, ""); err != nil || text == "" || strings.ContainsAny(text, "/ ^") {
		return pattern{}, fmt.Errorf("%q is no name of an interface, address or network: want as eth0, ib*, 10.1.2.3 or 10.1.0.0/16", text)
	}
	return pattern{name: text}, nil
}

func (p pattern) matches(name string, a netip.Addr) bool {
	if p.network.IsValid() {
		return p.network.Contains(a.WithZone(""))
	}
	ok, _ := path.Match(p.name, name)
	return ok
}

// index returns the first pattern that matches, or -1.
func index(all []pattern, name string, a netip.Addr) int {
	for n, p := range all {
		if p.matches(name, a) {
			return n
		}
	}
	return -1
}

// rank returns how well an address fits: lower is better. A reason says that it does not
// fit.
func (p *patterns) rank(name string, a netip.Addr) (n int, reason string) {
	if index(p.unwanted, name, a) >= 0 {
		return 0, fmt.Sprintf("%s=%s excludes it", Variable, p.text)
	}
	if len(p.wanted) == 0 {
		return 0, ""
	}
	if n = index(p.wanted, name, a); n < 0 {
		return 0, fmt.Sprintf("%s=%s does not name it", Variable, p.text)
	}
	return n, ""
}
