package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// If this test fails, go generate ./docs/... draws the figures again.
func TestEachFigureIsWhatItsCommandDraws(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	figures := onPages(t)
	chorale, err := build("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		args := slices.Clone(f.args)
		args[len(args)-1] = "-" // standard output: the default is an SVG figure
		drawn, err := exec.Command(chorale, args...).Output()
		if err != nil {
			t.Errorf("chorale %s: %v", strings.Join(args, " "), err)
			continue
		}
		kept, err := os.ReadFile(filepath.Join("..", f.file))
		if err != nil || !bytes.Equal(kept, drawn) {
			t.Errorf("docs/%s is not what its command draws: go generate ./docs/... (%v)", f.file, err)
		}
	}
}

// A figure should take less than 200 ms.
func BenchmarkFigure(b *testing.B) {
	figures := onPages(b)
	chorale, err := build("../..", b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range figures {
		b.Run(strings.TrimPrefix(f.file, "gallery/"), func(b *testing.B) {
			for b.Loop() {
				if err := exec.Command(chorale, append(slices.Clone(f.args[:len(f.args)-1]), "-")...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestEachPageShowsEveryFileOfItsDirectory(t *testing.T) {
	for _, page := range pages {
		kept, err := filepath.Glob("../" + page.figures + "/*.svg")
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, f := range onPage(t, page.file) {
			shown = append(shown, "../"+f.file)
		}
		slices.Sort(shown)
		if !slices.Equal(shown, kept) {
			t.Errorf("%s shows %q: want what is kept, %q", page.file, shown, kept)
		}
	}
}

func TestEachFigureHasItsTextAlternatives(t *testing.T) {
	for _, f := range onPages(t) {
		if len(f.alt) < 40 {
			t.Errorf("%s: %q says little of what it shows", f.file, f.alt)
		}
		title, desc := alternatives(t, filepath.Join("..", f.file))
		if title == "" || len(desc) < 80 {
			t.Errorf("%s: title %q, description %q", f.file, title, desc)
		}
	}
}

// alternatives returns the title and the description of a picture.
func alternatives(t *testing.T, file string) (title, desc string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := []string{}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return title, desc
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			at = append(at, token.Name.Local)
		case xml.EndElement:
			at = at[:len(at)-1]
		case xml.CharData:
			switch strings.Join(at, " ") {
			case "svg title":
				title += string(token)
			case "svg desc":
				desc += string(token)
			}
		}
	}
}

func TestErrorsInThePageNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"![a ring](gallery/a.svg)\n":                                         "gallery/a.svg has no command",
		"![a ring](gallery/a.svg)\n![b](gallery/b.svg)":                      "gallery/a.svg has no command",
		"![](gallery/a.svg)":                                                 "line 1: an image without words",
		"chorale draw bcast -o docs/gallery/a.svg":                           "line 1: a command without an image",
		"![a ring](gallery/a.svg)\nchorale draw bcast -o docs/gallery/b.svg": "line 2: draws docs/gallery/b.svg: want docs/gallery/a.svg",
		"![a ring](gallery/a.svg)\nchorale draw bcast -o docs/gallery/a.svg\nchorale draw -o docs/a.svg": "line 3: a command without an image",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestACommandMayBeQuotedAndLong(t *testing.T) {
	figures, err := parse("![a ring](gallery/a.svg)\n\n    chorale draw bcast --title 'On a ring' \\\n      -o docs/gallery/a.svg\n")
	want := []string{"draw", "bcast", "--title", "On a ring", "-o", "docs/gallery/a.svg"}
	if err != nil || len(figures) != 1 || !slices.Equal(figures[0].args, want) || figures[0].alt != "a ring" {
		t.Errorf("%q, %v: want %q", figures, err, want)
	}
}

func onPages(t testing.TB) (figures []figure) {
	t.Helper()
	for _, page := range pages {
		figures = append(figures, onPage(t, page.file)...)
	}
	return figures
}

func onPage(t testing.TB, page string) []figure {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return figures
}
