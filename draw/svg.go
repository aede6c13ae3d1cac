package draw

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An svg is an SVG document under way. Lengths are in pixels, y grows
// downwards.
type svg struct {
	out  bytes.Buffer
	open []string // the elements that have not ended
}

// newSVG begins a figure on a light ground, with its text alternative: a title
// of a few words, and a description of all that it shows. The id tells figures
// apart that stand in one page.
func newSVG(id, title, desc string, width, height float64) *svg {
	s := &svg{}
	s.start("svg", "xmlns", "http://www.w3.org/2000/svg", "class", "figure", "role", "img",
		"aria-labelledby", id+"-title "+id+"-desc", "width", width, "height", height,
		"viewBox", "0 0 "+number(width)+" "+number(height))
	s.words("title", title, "id", id+"-title")
	s.words("desc", desc, "id", id+"-desc")
	s.start("style")
	s.out.WriteString(".figure text{font-family:system-ui,\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif;font-size:14px;fill:" + ink + "}\n")
	s.end()
	s.empty("rect", "width", "100%", "height", "100%", "fill", paper)
	return s
}

// start begins an element. Attributes are names and values in turn; a value is
// a string, an int or a float64.
func (s *svg) start(name string, attributes ...any) {
	s.tag(name, attributes)
	s.out.WriteString(">\n")
	s.open = append(s.open, name)
}

// end ends the element that began last.
func (s *svg) end() {
	last := len(s.open) - 1
	s.out.WriteString("</" + s.open[last] + ">\n")
	s.open = s.open[:last]
}

// empty writes an element without content.
func (s *svg) empty(name string, attributes ...any) {
	s.tag(name, attributes)
	s.out.WriteString("/>\n")
}

// words writes an element that holds nothing but text.
func (s *svg) words(name, text string, attributes ...any) {
	s.tag(name, attributes)
	s.out.WriteString(">" + escape(text) + "</" + name + ">\n")
}

// text writes words whose baseline begins at x, y, or is centred there or ends
// there if the attribute text-anchor says so.
func (s *svg) text(x, y float64, words string, attributes ...any) {
	s.words("text", words, append([]any{"x", x, "y", y}, attributes...)...)
}

func (s *svg) tag(name string, attributes []any) {
	s.out.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		value := ""
		switch v := attributes[i+1].(type) {
		case float64:
			value = number(v)
		default:
			value = escape(fmt.Sprint(v))
		}
		s.out.WriteString(" " + attributes[i].(string) + "=\"" + value + "\"")
	}
}

// writeTo ends all elements and writes the document.
func (s *svg) writeTo(w io.Writer) error {
	for len(s.open) > 0 {
		s.end()
	}
	_, err := w.Write(s.out.Bytes())
	return err
}

// number writes a length in at most two decimals, so that figures do not
// depend on how a machine rounds.
func number(v float64) string {
	v = math.Round(v*100) / 100
	if v == 0 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// escape makes text fit for XML, also within quotes. What XML cannot hold at
// all becomes U+FFFD.
func escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return utf8.RuneError
		}
		return r
	}, text)
	return escaper.Replace(text)
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;")

// textWidth is the room to leave for words in a font of the given size. It is
// generous, since nobody knows which font a reader has.
func textWidth(words string, size float64) float64 {
	em := 0.0
	for _, r := range words {
		switch {
		case strings.ContainsRune(".,:;'|!ijlt()[] ", r):
			em += 0.36
		case strings.ContainsRune("mwMW→←↔", r):
			em += 0.95
		case 'A' <= r && r <= 'Z':
			em += 0.72
		default:
			em += 0.62
		}
	}
	return em * size
}

// The colours are told apart by readers who see fewer of them, and in print.
// Those of the steps are of the palette of Okabe and Ito, darkened until words
// written in them can be read on white. Red is kept for what goes wrong.
const (
	paper = "#ffffff"
	ink   = "#1f2430"
	faint = "#6b7280" // words of lesser weight, links
	pale  = "#eef1f5" // the inside of what has no colour of its own
	red   = "#c8102e"
)

var hues = [...]string{"#0072b2", "#00795a", "#a8458a", "#946200", "#4b55c4", "#5b6470"}

// hue is the colour of a step, counted from 0.
func hue(step int) string { return hues[step%len(hues)] }
