package draw

import (
	"strings"
	"unicode/utf8"
)

// A heading is the title of a figure, and a note below it. Text that is longer
// than the figure is wide goes on in another line.
type heading struct {
	x, y, size  float64 // of the title: where its first line begins, and its font
	title, note []string
	width       float64 // that the figure needs
	more        float64 // height of the lines after the first ones
}

const (
	headingRoom = 720.0 // a figure is not so narrow that a heading breaks before
	noteSize    = 13.0
)

// newHeading breaks a title and a note in lines for a figure of the given width.
func newHeading(x, y, size float64, title, note string, width float64) heading {
	h := heading{x: x, y: y, size: size}
	room := max(width, headingRoom) - 2*x
	h.title = wrap(title, room, func(line string) float64 { return boldWidth(line, size) })
	h.note = wrap(note, room, func(line string) float64 { return textWidth(line, noteSize) })
	for _, line := range h.title {
		h.width = max(h.width, boldWidth(line, size)+2*x)
	}
	for _, line := range h.note {
		h.width = max(h.width, textWidth(line, noteSize)+2*x)
	}
	h.more = float64(len(h.title)-1)*h.titleLine() + float64(len(h.note)-1)*h.noteLine()
	return h
}

func (h *heading) titleLine() float64 { return 1.25 * h.size }
func (h *heading) noteLine() float64  { return 1.3 * noteSize }

// draw draws the heading. What is drawn after it moves down as far as the heading
// has more lines than two.
func (h *heading) draw(s *svg) {
	y := h.y
	for i, line := range h.title {
		if i > 0 {
			y += h.titleLine()
		}
		s.text(h.x, y, line, "style", "font-size:"+number(h.size)+"px;font-weight:600")
	}
	y += 1.1 * h.size
	for _, line := range h.note {
		if line != "" {
			s.text(h.x, y, line, "style", "font-size:"+number(noteSize)+"px;fill:"+muted)
		}
		y += h.noteLine()
	}
	if h.more > 0 {
		s.start("g", "transform", "translate(0 "+number(h.more)+")")
	}
}

// wrap breaks a text in lines of a width, between words where it can.
func wrap(text string, room float64, width func(string) float64) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case width(*last+" "+word) <= room:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
		for last = &lines[len(lines)-1]; width(*last) > room; last = &lines[len(lines)-1] {
			end := fitting(*last, room, width)
			lines = append(lines, (*last)[end:])
			lines[len(lines)-2] = (*last)[:end]
		}
	}
	return lines
}

// fitting returns the length of the longest beginning of a text that is not wider
// than room, of one rune at least. It prefers to end after a comma.
func fitting(text string, room float64, width func(string) float64) int {
	_, end := utf8.DecodeRuneInString(text)
	for next := range text {
		if next > end && width(text[:next]) <= room {
			end = next
		}
	}
	if comma := strings.LastIndexByte(text[:end], ','); comma >= end/2 {
		return comma + 1
	}
	return end
}
