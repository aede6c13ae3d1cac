package main

import (
	"fmt"
	"slices"
	"strings"
)

// notes returns what a reader must know before the figures: sentences made of the
// measurements, so that they are true of these and of no others.
func (r *report) notes() []string {
	if r.Hosts {
		return []string{r.hostsNote(), r.pagesNote()}
	}
	return []string{r.processorsNote(), r.pagesNote(), r.congestionNote()}
}

// hostsNote says what the hosts are, and what they share.
func (r *report) hostsNote() string {
	var sizes []string
	for _, n := range r.ranks() {
		sizes = append(sizes, fmt.Sprintf("n=%d on %d hosts", n, n/ranksPerHost))
	}
	return fmt.Sprintf("A host is a network namespace with %d ranks, and has one of the machine's %s: %s. Hosts that share a processor wait for each other, and a packet takes a processor's time instead of a network's. On both sides, the sockets between hosts have the system's default congestion control, %s.",
		ranksPerHost, plural(r.Machine.Cores, "processor"), strings.Join(sizes, ", "), r.Machine.Congestion)
}

// ranks returns the numbers of ranks of all cells.
func (r *report) ranks() (all []int) {
	for _, c := range r.Results {
		for _, s := range c.ByRanks {
			all = append(all, s.Ranks)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// processorsNote tells the numbers of ranks with a processor for each from the others.
func (r *report) processorsNote() string {
	var fit, more []string
	for _, n := range r.ranks() {
		if word := fmt.Sprintf("n=%d", n); n <= r.Machine.Cores {
			fit = append(fit, word)
		} else {
			more = append(more, word)
		}
	}
	cores := plural(r.Machine.Cores, "processor")
	fair, poor := strings.Join(fit, " and "), strings.Join(more, " and ")
	const weak = "which MPI's libraries are not made for: their ranks spin, or yield to ranks that have nothing to do either"
	switch {
	case len(more) == 0:
		return "Every rank has a processor of its own."
	case len(fit) == 0:
		return fmt.Sprintf("With %s, ranks outnumber the machine's %s, %s. No cell has a processor for each rank.", poor, cores, weak)
	}
	return fmt.Sprintf("Read %s first: there, every rank has a processor of its own. With %s, ranks outnumber the machine's %s, %s.", fair, poor, cores, weak)
}

// hugePages ends the names of the times that mpi/mpi.c has measured in such buffers.
const hugePages = ", huge pages"

// pagesNote says what kind of buffers MPI had, and which was the better one.
func (r *report) pagesNote() string {
	cells, better := 0, 0
	gains := map[int][]float64{} // by ranks: the time in small pages over that in huge ones
	for _, c := range r.Results {
		for _, x := range c.Cells {
			small, huge := x.bestPeer(false), x.bestPeer(true)
			if small == 0 || huge == 0 {
				continue
			}
			cells++
			if huge < small {
				better++
			}
			gains[x.Ranks] = append(gains[x.Ranks], small/huge)
		}
	}
	if cells == 0 {
		return "MPI's buffers lay on pages of 4 KiB, while chorale moves buffers that are used again to huge pages. This run did not measure MPI with huge pages."
	}
	var medians []string
	for _, n := range r.ranks() {
		if len(gains[n]) > 0 {
			medians = append(medians, fmt.Sprintf("%s with n=%d", digits(median(gains[n])), n))
		}
	}
	return fmt.Sprintf("Chorale moves buffers that are used again to huge pages. So MPI's long messages are measured in both kinds of buffers, on pages of 4 KiB and on huge pages, and the better one counts, cell by cell: huge pages in %d of %d cells. Its time on small pages over that on huge ones has a median of %s.",
		better, cells, strings.Join(medians, ", "))
}

// bestPeer returns the least time of the peers in one kind of buffers, or 0.
func (x ratio) bestPeer(huge bool) (least float64) {
	for _, p := range x.Peers {
		if strings.HasSuffix(p.How, hugePages) == huge && (least == 0 || p.Time < least) {
			least = p.Time
		}
	}
	return least
}

// congestionNote says which congestion control each side has over TCP.
func (r *report) congestionNote() string {
	const ours, link = "reno", "[What that changes](performance-method.md#congestion-control)."
	switch theirs := r.Machine.Congestion; theirs {
	case "":
		return fmt.Sprintf("Over TCP, chorale's sockets ask for %s, and Open MPI's have the system's default, which this run did not record. %s", ours, link)
	case ours:
		return fmt.Sprintf("Over TCP, chorale's sockets ask for %s, which is the system's default, too.", ours)
	default:
		return fmt.Sprintf("Over TCP, chorale's sockets ask for %s, and Open MPI's have the system's default, %s. %s", ours, theirs, link)
	}
}
