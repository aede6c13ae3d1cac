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

// An svg is an SVG document while it is written. Lengths are in pixels, y grows
// downwards.
type svg struct {
	out  bytes.Buffer
	open []string // the elements that have not ended
}

// newSVG begins a figure on a white background, with its text alternatives: a
// short title and a full description. The id is the prefix of the ids in the
// figure.
func newSVG(id, title, desc string, width, height float64) *svg {
	s := &svg{}
	s.start("svg", "xmlns", "http://www.w3.org/2000/svg", "class", "figure", "role", "img",
		"aria-labelledby", id+"-title "+id+"-desc", "width", width, "height", height,
		"viewBox", "0 0 "+number(width)+" "+number(height))
	s.element("title", title, "id", id+"-title")
	s.element("desc", desc, "id", id+"-desc")
	s.start("style")
	s.out.WriteString(".figure text{font-family:system-ui,\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif;font-size:14px;fill:" + foreground + "}\n")
	s.end()
	s.empty("rect", "width", "100%", "height", "100%", "fill", background)
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

// element writes an element whose only content is text.
func (s *svg) element(name, text string, attributes ...any) {
	s.tag(name, attributes)
	s.out.WriteString(">" + escape(text) + "</" + name + ">\n")
}

// text writes text on a baseline that starts at x, y. With the attribute
// text-anchor, x is its middle or its end.
func (s *svg) text(x, y float64, text string, attributes ...any) {
	s.element("text", text, append([]any{"x", x, "y", y}, attributes...)...)
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

// number formats a length with at most two decimals, so that figures do not
// depend on how a machine rounds.
func number(v float64) string {
	v = math.Round(v*100) / 100
	if v == 0 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// escape escapes text for XML, including quoted attributes. Characters that XML
// excludes become U+FFFD.
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

// textWidth estimates the width of a text in a font of the given size. The viewer's
// font is unknown: the estimate is that of DejaVu Sans, the widest of those that the
// style names, or a little more.
func textWidth(text string, size float64) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune(".,:;'|!ijlt()[] ", r):
			em += 0.36
		case strings.ContainsRune("mwMW%@…", r) || r >= 0x2E80:
			em += 1
		case 'A' <= r && r <= 'Z' || strings.ContainsRune("+=<>~#^×≤⊕→←↔", r):
			em += 0.8
		default:
			em += 0.62
		}
	}
	return em * size
}

// boldWidth estimates the width of a text in a bold font.
func boldWidth(text string, size float64) float64 { return 1.15 * textWidth(text, size) }

// The colors can be distinguished in print and by color-blind readers. The step
// colors are from the palette of Okabe and Ito, darkened until text in them is
// legible on white. Red is reserved for congestion and waiting.
const (
	background = "#ffffff"
	foreground = "#1f2430"
	muted      = "#6b7280" // secondary text, links
	subtle     = "#eef1f5" // the default fill
	red        = "#c8102e"
)

var stepColors = [...]string{"#0072b2", "#00795a", "#a8458a", "#946200", "#4b55c4", "#5b6470"}

// stepColor returns the color of a step, counted from 0.
func stepColor(step int) string { return stepColors[step%len(stepColors)] }
