package launch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Host is a machine that runs ranks of a job.
type Host struct {
	// Name is what ssh calls the host: a name or an address, after a user and an @ if
	// that is not the user of the launcher.
	Name string
	// Slots is the most ranks that the host runs, at least 1.
	Slots int
}

const (
	// maxHostFile bounds the length of a host file, in bytes.
	maxHostFile = 16 << 20

	// maxHostLine bounds the length of one of its lines, in bytes.
	maxHostLine = 4 << 10
)

// ParseHosts parses a list of hosts with commas between them, as in a,user@b:4,[::1]:2.
// A number behind a colon is that of the slots, which is 1 without. A host that occurs
// twice has the slots of both.
func ParseHosts(list string) ([]Host, error) {
	var hosts hostList
	for text := range strings.SplitSeq(list, ",") {
		h, _, err := parseHost(strings.TrimSpace(text))
		if err == nil {
			err = hosts.add(h)
		}
		if err != nil {
			return nil, usagef("hosts %q: %w", list, err)
		}
	}
	return hosts.hosts, nil
}

// ReadHosts reads a host file, in the form of MPICH's Hydra or of Open MPI: on each line
// a host, as ParseHosts takes it, or a host and slots=N. An empty line, and what follows
// a #, does not count. The other words of either form are known: user=NAME is the
// user, and max_slots and binding have no effect. Name is that of the file, for errors,
// which name the line too.
func ReadHosts(r io.Reader, name string) ([]Host, error) {
	var hosts hostList
	in := bufio.NewScanner(io.LimitReader(r, maxHostFile+1))
	in.Buffer(make([]byte, 0, 512), maxHostLine)
	read, line := 0, 0
	fail := func(err error) ([]Host, error) { return nil, usagef("%s:%d: %w", name, line, err) }
	for in.Scan() {
		line++
		if read += len(in.Bytes()) + 1; read > maxHostFile {
			return fail(fmt.Errorf("want a file of at most %d bytes", maxHostFile))
		}
		h, found, err := parseHostLine(in.Text())
		if err == nil && found {
			err = hosts.add(h)
		}
		if err != nil {
			return fail(err)
		}
	}
	line++
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fail(fmt.Errorf("want a line of at most %d bytes", maxHostLine))
	case err != nil:
		return nil, usagef("%s: %w", name, err)
	case len(hosts.hosts) == 0:
		return nil, usagef("%s: no host: want lines as in node1:4, or node1 slots=4", name)
	}
	return hosts.hosts, nil
}

// parseHostLine parses a line of a host file.
func parseHostLine(line string) (h Host, found bool, err error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return h, false, nil
	}
	h, counted, err := parseHost(words[0])
	for _, word := range words[1:] {
		if err != nil {
			break
		}
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "slots":
			if counted {
				err = fmt.Errorf("host %s: both %s and %s: want the slots once", h.Name, words[0], word)
				break
			}
			counted = true
			h.Slots, err = parseSlots(value)
		case "user":
			if strings.Contains(h.Name, "@") {
				err = fmt.Errorf("host %s: it has a user, and %s: want the user once", h.Name, word)
				break
			}
			h.Name = value + "@" + h.Name
			err = checkHost(h.Name)
		case "max_slots", "max-slots", "binding":
		default:
			err = fmt.Errorf("host %s: %q: want slots=N, user=NAME, or a # before a comment", h.Name, word)
		}
	}
	return h, true, err
}

// parseHost parses [user@]host[:slots], where host may be an IPv6 address in brackets.
// Counted reports whether it has a number of slots.
func parseHost(text string) (h Host, counted bool, err error) {
	user, rest := "", text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		user, rest = text[:i+1], text[i+1:]
	}
	h.Slots = 1
	name, slots := rest, ""
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		if name, slots, ok = strings.Cut(inner, "]"); !ok {
			return h, false, fmt.Errorf("host %q: want a ] behind the address", text)
		}
		if slots, counted = strings.CutPrefix(slots, ":"); !counted && slots != "" {
			return h, false, fmt.Errorf("host %q: want a colon and the slots behind the ]", text)
		}
	} else if strings.Count(rest, ":") > 1 {
		return h, false, fmt.Errorf("host %q: want an IPv6 address in brackets, as in [fe80::1]:4", text)
	} else {
		name, slots, counted = strings.Cut(rest, ":")
	}
	if h.Name = user + name; name == "" || user == "@" {
		return h, false, fmt.Errorf("host %q: want [user@]host, or [user@]host:slots", text)
	}
	if err = checkHost(h.Name); err == nil && counted {
		h.Slots, err = parseSlots(slots)
	}
	return h, counted, err
}

// checkHost returns an error for a name that ssh would take for an option, or that a
// shell would not take for one word: ssh's own configuration may pass it to a shell.
func checkHost(name string) error {
	if strings.HasPrefix(name, "-") || strings.Contains(name, "@-") {
		return fmt.Errorf("host %q: want a name that does not begin with -", name)
	}
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("._-:%@+=/", c):
		default:
			return fmt.Errorf("host %q: want letters, digits and ._-:%%@+=/ alone", name)
		}
	}
	if len(name) > maxHost {
		return fmt.Errorf("host %.20q…: want at most %d bytes", name, maxHost)
	}
	return nil
}

func parseSlots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRanks {
		return 0, fmt.Errorf("%q slots: want a number from 1 to %d", text, maxRanks)
	}
	return n, nil
}

// A hostList adds up the slots of each host.
type hostList struct {
	hosts []Host
	index map[string]int
	slots int
}

func (l *hostList) add(h Host) error {
	if l.slots += h.Slots; l.slots > maxRanks {
		return fmt.Errorf("host %s: more than %d slots altogether", h.Name, maxRanks)
	}
	if i, ok := l.index[h.Name]; ok {
		l.hosts[i].Slots += h.Slots
		return nil
	}
	if l.index == nil {
		l.index = make(map[string]int)
	}
	l.index[h.Name] = len(l.hosts)
	l.hosts = append(l.hosts, h)
	return nil
}

// place returns the ranks of each host, which have at least size slots together. Ranks
// fill one host after the other, or in rounds go to each host that has a free slot.
func place(hosts []Host, size int, rounds bool) (ranks [][]int) {
	ranks = make([][]int, len(hosts))
	for rank := 0; rank < size; {
		for i, h := range hosts {
			n := min(h.Slots-len(ranks[i]), size-rank)
			if rounds {
				n = min(n, 1)
			}
			for range n {
				ranks[i] = append(ranks[i], rank)
				rank++
			}
		}
	}
	return ranks
}
