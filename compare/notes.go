package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notes returns what a reader must know before the figures: sentences made of the
// measurements, so that they are true of these and of no others.
func (r *report) notes() []string {
	if r.Hosts {
		return []string{r.hostsNote(), r.pagesNote(), r.spreadNote()}
	}
	return append([]string{r.processorsNote(), r.pagesNote(), r.congestionNote(), r.spreadNote()}, r.Omitted...)
}

// spreadNote says how far the runs differ.
func (r *report) spreadNote() string {
	if r.Rounds < 2 {
		return "There was one run, so nothing tells how far runs differ."
	}
	cells, apart := 0, 0
	for _, c := range r.Results {
		for _, s := range c.ByRanks {
			cells, apart = cells+s.Cells, apart+s.Unsteady
		}
	}
	return fmt.Sprintf("A figure is the median of %s, each by new processes; in brackets after a median over cells stand the least and the greatest of the runs' medians. In %d of %d cells the runs' ratios differ by more than a factor of %s: † marks them.",
		plural(r.Rounds, "full run"), apart, cells, digits(unsteady))
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
		if c.Against != "" {
			continue
		}
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
	return fmt.Sprintf("Chorale moves buffers that are used again to huge pages. So MPI's long messages are measured in both kinds of buffers, on pages of 4 KiB and on huge pages, and the better one counts, cell by cell: huge pages in %d of %d cells. Its time on small pages over that on huge ones has a median of %s. Where the two differ by more than a factor of %s, a cell shows the other one after a slash.",
		better, cells, strings.Join(medians, ", "), digits(otherPages))
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
	const link = "[What that changes](performance-method.md#congestion-control)."
	switch theirs := r.Machine.Congestion; theirs {
	case "":
		return fmt.Sprintf("Over TCP, chorale's sockets ask for %s, and Open MPI's have the system's default, which this run did not record. %s", ourCongestion, link)
	case ourCongestion:
		return fmt.Sprintf("Over TCP, chorale's sockets ask for %s, which is the system's default, too.", ourCongestion)
	default:
		gains := r.controlGains()
		if gains == "" {
			return fmt.Sprintf("Over TCP, chorale's sockets ask for %s, and Open MPI's have the system's default, %s. %s", ourCongestion, theirs, link)
		}
		return fmt.Sprintf("Over TCP, chorale's sockets ask for %s. Open MPI is measured with the system's default, %s, and with %s; the better one counts, cell by cell, and a line of its own has both sides with %[1]s. Open MPI's time with %[2]s over that with %[1]s has a median of %[4]s. %[5]s",
			ourCongestion, theirs, ourCongestion, gains, link)
	}
}

// controlGains returns the medians, by ranks, of Open MPI's time with the system's congestion
// control over that with ours; "" if the two were not measured.
func (r *report) controlGains() string {
	gains := map[int][]float64{}
	for _, c := range r.Results {
		if c.Transport != "tcp" || c.Against != "" {
			continue
		}
		for _, x := range c.Cells {
			var system, same float64
			for _, p := range x.Peers {
				switch {
				case strings.HasPrefix(p.How, openMPI.name+" "+ourCongestion+" "):
					same = leastOf(same, p.Time)
				case strings.HasPrefix(p.How, openMPI.name+" MPI_"): // bound as the other one is
					system = leastOf(system, p.Time)
				}
			}
			if system > 0 && same > 0 {
				gains[x.Ranks] = append(gains[x.Ranks], system/same)
			}
		}
	}
	var medians []string
	for _, n := range slices.Sorted(maps.Keys(gains)) {
		medians = append(medians, fmt.Sprintf("%s with n=%d", digits(median(gains[n])), n))
	}
	return strings.Join(medians, ", ")
}
