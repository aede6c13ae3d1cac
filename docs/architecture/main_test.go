package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// go generate ./docs/... makes both anew.
func TestThePictureAndThePageAreMadeFromTheTable(t *testing.T) {
	picture, page, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{pictureFile: picture, pageFile: page} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what %s makes: go generate ./docs/... (%v)", file, tableFile, err)
		}
	}
}

func TestThePictureShowsEveryImportOrAPathThatImpliesIt(t *testing.T) {
	rows := table(t)
	imports, kept := drawnImports(rows), arrows(rows)
	for from, paths := range imports {
		for _, path := range paths {
			if !reaches(kept, from, path) {
				t.Errorf("no way leads from %s to %s", from, path)
			}
		}
	}
	for from, paths := range kept {
		for _, path := range paths {
			if !slices.Contains(imports[from], path) {
				t.Errorf("an arrow leads from %s to %s, which is no import", from, path)
			}
		}
	}
}

func TestNoBoxIsCoveredByAnotherOrCrossedByAnArrow(t *testing.T) {
	d := newDrawing(table(t))
	for i, b := range d.boxes {
		for _, other := range d.boxes[:i] {
			if b.y == other.y && b.left() < other.right() && other.left() < b.right() {
				t.Errorf("%s covers %s", b.path, other.path)
			}
		}
		for _, a := range d.arrows {
			if a.from != b && a.to != b && crosses(a, b) {
				t.Errorf("the arrow from %s to %s crosses %s", a.from.path, a.to.path, b.path)
			}
		}
	}
}

// crosses reports whether an arrow passes through a box. Between rows it only
// passes beside boxes, so that its places at the height of the box decide.
func crosses(a *arrow, b *box) bool {
	return slices.ContainsFunc(a.knots(), func(p point) bool {
		return b.y <= p.y && p.y <= b.bottom() && b.left() <= p.x && p.x <= b.right()
	})
}

func TestTheWordsOfABoxFitIntoIt(t *testing.T) {
	for _, b := range newDrawing(table(t)).boxes {
		if all := lines(b.duty, dutyLength); len(all) > 2 || slices.ContainsFunc(all, func(l string) bool { return len(l) > dutyLength }) {
			t.Errorf("%s: %q has more than two lines of %d characters", b.path, all, dutyLength)
		}
	}
}

func TestATableThatIsWrongIsToldWhere(t *testing.T) {
	for text, want := range map[string]string{
		"1 1 | a":                                  "line 1: 2 cells: want 4 or 5",
		"= k\n1 | a | d | ":                        "line 2: place \"1\": want a row and a column",
		"1 x | a | d | ":                           "line 1: ",
		"1 1 | a | d |\n2 1 | a | d |":             "a is listed twice",
		"1 1 | a | d |\n1 1 | b | d |":             "a and b have one place",
		"1 1 | a | d | b":                          "a may import b, which is not listed",
		"1 1 | a | d | b\n1 2 | b | d |":           "a may import b, which is not drawn below it",
		"# a comment\n\n2 1 | a | d | b\n1 1|b|d|": "a may import b, which is not drawn below it",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := insert("a page without a table", nil); err == nil {
		t.Error("a page without a table is no error")
	}
}

func table(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
