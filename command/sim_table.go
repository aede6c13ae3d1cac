package command

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chorale-go/chorale/sim"
	"github.com/chorale-go/chorale/topo"
)

// simTables prints a result as tables: the whole and the comparison, and of the others
// those that say something, or that are asked for.
type simTables struct {
	w     io.Writer
	e     *scenario
	r     *sim.Result
	all   bool // abridge no table, and leave none out
	asked []string
	lines [][]any // of the table
}

// partialTables are the names of the tables of a part of the simulation.
var partialTables = []string{"steps", "ranks", "path", "links"}

func newSimTables(w io.Writer, e *scenario, r *sim.Result, all bool, asked []string) *simTables {
	return &simTables{w: w, e: e, r: r, all: all, asked: asked}
}

func (s *simTables) print() error {
	s.head()
	tables, left := []func(){s.total, s.compared}, []string{}
	for i, table := range []func(){s.steps, s.ranks, s.path, s.links} {
		switch name := partialTables[i]; {
		case s.r.Messages == 0 && name != "ranks":
		case s.all || slices.Contains(s.asked, name) || s.tells(name):
			tables = append(tables, table)
		default:
			left = append(left, name)
		}
	}
	for _, table := range tables {
		fmt.Fprintln(s.w)
		s.lines = nil
		table()
		if err := printTable(s.w, s.cells()); err != nil {
			return err
		}
	}
	var notes []string
	if s.e.free(s.r) && s.e.config.Topology.Diameter() > 1 {
		notes = append(notes, freeNote)
	}
	if s.e.sharesHalfway(s.r) {
		notes = append(notes, halfwayNote)
	}
	if len(left) > 0 {
		notes = append(notes, fmt.Sprintf("left out: %s; see --tables", strings.Join(left, ", ")))
	}
	if len(notes) == 0 {
		return nil
	}
	for i, note := range notes {
		notes[i] = hang(note, "")
	}
	_, err := fmt.Fprintf(s.w, "\n%s\n", strings.Join(notes, "\n"))
	return err
}

// tells reports whether a table says more than the whole does: which messages want the same
// link in which step, what the messages that decide the time wait for, and which links
// carry most. It does if there is congestion.
func (s *simTables) tells(table string) bool {
	return table != "ranks" && (s.r.MaxLinkLoad > 1 || waitsForLink(s.r))
}

// row adds a line to the table.
func (s *simTables) row(cells ...any) { s.lines = append(s.lines, cells) }

// cells formats the lines of the table. Times have as many decimals as there is room for:
// up to six, and so few that only fewestDigits remain if need be.
func (s *simTables) cells() [][]string {
	const fewestDigits = 4
	for digits := 16; ; digits-- {
		lines := make([][]string, len(s.lines))
		for i, line := range s.lines {
			for _, c := range line {
				if x, ok := c.(float64); ok {
					c = rounded(x, digits)
				}
				lines[i] = append(lines[i], fmt.Sprint(c))
			}
		}
		if digits == fewestDigits || roomForLast(lines) {
			return lines
		}
	}
}

// decimal formats a time, rounded to six decimals.
func decimal(x float64) string { return rounded(x, 16) }

// rounded formats a time, rounded to six decimals, and to so many digits unless they are
// before the point.
func rounded(x float64, digits int) string {
	a := math.Abs(x)
	if a < 1e-3 && x != 0 || a >= 1e15 || math.IsNaN(x) {
		return strconv.FormatFloat(x, 'g', min(digits, 6), 64)
	}
	before := 1
	if a >= 10 {
		before = 1 + int(math.Log10(a))
	}
	scale := math.Pow10(min(max(digits-before, 0), 6))
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
}

// ratio formats a ratio: four digits, or as many as tell it from 1.
func ratio(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case math.Abs(x-1) <= exact:
		return "1"
	case math.Abs(x-1) < 1e-3:
		return strconv.FormatFloat(x, 'f', 1+int(-math.Log10(math.Abs(x-1))), 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// longTable is the number of lines above which a table is abridged.
const longTable = 32

// rows calls show for lines 0 to n-1. If the table is abridged, it omits those in the
// middle.
func (s *simTables) rows(n int, show func(i int)) {
	first, last := n, n
	if n > longTable && !s.all {
		first, last = longTable/2, n-longTable/2
	}
	for i := range first {
		show(i)
	}
	if last > first {
		s.more(last - first)
	}
	for i := last; i < n; i++ {
		show(i)
	}
}

// more adds a line in place of n omitted ones.
func (s *simTables) more(n int) {
	line := make([]any, len(s.lines[0]))
	for i := range line {
		line[i] = "…"
	}
	line[len(line)-1] = fmt.Sprintf("… %d more: see --all", n)
	s.row(line...)
}

func (s *simTables) head() {
	lines := []string{s.e.title, network(s.e.config.Topology), s.e.rules()}
	if s.e.chosen != "" {
		lines = append(lines, "chosen: "+s.e.chosen)
	}
	for _, line := range lines {
		fmt.Fprintln(s.w, hang(line, "  "))
	}
}

// rules says in a line what the network costs, and how it is used.
func (e *scenario) rules() string {
	c := e.config
	m := c.Model
	ports := "single port"
	if c.AllPort {
		ports = "all ports"
	}
	rules := []string{
		fmt.Sprintf("ts %s, tw %s, th %s, top %s", decimal(m.Ts), decimal(m.Tw), decimal(m.Th), decimal(m.Top)),
		ports, switchingOf(c), "congestion: " + congestionOf(c),
	}
	if c.Between != nil {
		rules[0] += "; " + betweenText(*c.Between)
	}
	if c.Machine != nil {
		text := fmt.Sprintf("this machine over %s, in µs: %s", e.transport, plural(c.Machine.Processors, "processor"))
		if c.Between != nil {
			text += " on each host"
		}
		if !e.quiet {
			text += ", which was not quiet when it was measured"
		}
		return strings.Join(append([]string{text}, rules[:1]...), "; ")
	}
	if c.MemoryBandwidth > 0 {
		rules = append(rules, "memory bandwidth "+decimal(c.MemoryBandwidth))
	}
	if c.Sync {
		rules = append(rules, "steps together")
	}
	return strings.Join(rules, "; ")
}

// network summarizes a topology in a line.
func network(t topo.Topology) string {
	bisection := "unknown"
	if width, known := t.Bisection(); known {
		bisection = strconv.Itoa(width)
	}
	return fmt.Sprintf("%v: processors %d, switches %d, links %d, diameter %d, bisection %s, ports %d",
		t, t.Processors(), t.Switches(), t.LinkCount(), t.Diameter(), bisection, t.Ports())
}

func (s *simTables) total() {
	s.row("TIME", "STEPS", "MESSAGES", "WORDS", "MAX LINK LOAD")
	s.row(s.r.Time, s.r.Steps, s.r.Messages, s.r.Words, s.r.MaxLinkLoad)
}

func (s *simTables) compared() {
	e, b := s.e, s.e.bounds(s.r)
	s.row("COMPARED WITH", "TIME", "RATIO", "WHAT IT IS (α = ts, β = tw, γ = top)")
	if f := e.formula; f != nil {
		ref := e.compare(s.r, f.cost)
		text := strings.Split(f.text, "; ")
		s.row("formula", ref.time, ratio(ref.ratio), text[0])
		for _, more := range text[1:] {
			s.row("", "", "", more)
		}
		s.row("", "", "", "n = "+plural(f.words, "word"))
		for _, why := range e.differs(s.r) {
			s.row("", "", "", "but "+why)
		}
	} else {
		s.row("formula", "-", "-", s.noFormula())
	}
	s.row("lower bound", b.sum.time, ratio(b.sum.ratio), "these, one after another, on one port:")
	if e.twoPrices {
		s.row("", "", "", "(each at the lower of the two prices)")
	}
	s.row("  start-ups", b.startups.time, ratio(b.startups.ratio), plural(int(e.bound.Startups), "message")+" one after another")
	s.row("  words", b.words.time, ratio(b.words.ratio), decimal(e.bound.Words)+" words in or out of a rank")
	s.row("  combining", b.combines.time, ratio(b.combines.ratio), decimal(e.bound.Combines)+" words combined by a rank")
}

// noFormula says why there is no formula.
func (s *simTables) noFormula() string {
	if s.e.twoPrices {
		return "none: messages between hosts have another price"
	}
	return "a file has none"
}

func (s *simTables) steps() {
	s.row("STEP", "MESSAGES", "WORDS", "START", "END", "LINKS", "LOAD", "CONGESTED LINKS (MESSAGES)")
	s.rows(len(s.r.PerStep), func(i int) {
		t := s.r.PerStep[i]
		s.row(i+1, t.Messages, t.Words, t.Start, t.End, t.LinksInUse, t.MaxLinkLoad, s.congested(t.Congested))
	})
}

// fewLinks is the number of congested links of a step that an abridged table names:
// those with the highest load.
const fewLinks = 8

func (s *simTables) congested(loads []sim.Load) string {
	if len(loads) == 0 {
		return "-"
	}
	loads = slices.Clone(loads)
	slices.SortStableFunc(loads, func(a, b sim.Load) int { return cmp.Compare(b.Messages, a.Messages) })
	var names []string
	for i, l := range loads {
		if i == fewLinks && !s.all {
			names = append(names, fmt.Sprintf("and %d more", len(loads)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s (%d)", s.r.Name(l.Link), l.Messages))
	}
	return strings.Join(names, " ")
}

func (s *simTables) ranks() {
	s.row("RANK", "SENT", "WORDS", "RECEIVED", "WORDS", "SENDING", "RECEIVING", "COMBINING", "END")
	s.rows(len(s.r.PerRank), func(i int) {
		k := s.r.PerRank[i]
		s.row(i, k.Sent, k.SentWords, k.Received, k.ReceivedWords, k.Sending, k.Receiving, k.Combining, k.End)
	})
}

func (s *simTables) path() {
	s.row("PATH", "STEP", "WORDS", "HOPS", "READY", "WAITED", "START", "END", "AFTER", "WAITED FOR")
	s.rows(len(s.r.Path), func(i int) {
		l := s.r.Path[i]
		s.row(fmt.Sprintf("%d→%d", l.From, l.To), l.Step+1, l.Words, l.Hops, l.Ready, l.Waited, l.Start, l.End, l.ComputeAfter, cmp.Or(l.WaitedFor, "-"))
	})
}

// links prints the links that carry the most words.
func (s *simTables) links() {
	if !s.r.Config.Record {
		s.row("links are left out: see --all")
		return
	}
	s.row("LINK", "MESSAGES", "WORDS", "BUSY", "% OF THE TIME")
	links := slices.Clone(s.r.Links)
	slices.SortStableFunc(links, func(a, b sim.Link) int { return cmp.Compare(b.Words, a.Words) })
	for i, l := range links {
		if i == fewLinks && !s.all {
			s.more(len(links) - i)
			break
		}
		s.row(s.r.Name(l.Link), l.Messages, l.Words, l.Busy, percent(l.Busy, s.r.Time))
	}
}

// percent formats a part of a whole in percent.
func percent(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*part/whole, 'f', 0, 64)
}

func portsOf(c sim.Config) string {
	if c.AllPort {
		return "all"
	}
	return "single"
}

func switchingOf(c sim.Config) string {
	if c.StoreAndForward {
		return "store-and-forward"
	}
	return "cut-through"
}

func congestionOf(c sim.Config) string {
	if c.Share {
		return "share"
	}
	return "queue"
}
