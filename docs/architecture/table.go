package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The files that the generator reads and writes, seen from its directory.
const (
	tableFile   = "packages.txt"
	pageFile    = "../architecture.md"
	pictureFile = "../architecture.svg"
)

// A row is one package of the table, or a package and all below it.
type row struct {
	kind     string // the heading above the row
	drawn    bool
	row, col float64 // the place in the picture, counted from 1
	path     string  // "chorale" for the module's root; may end in "/..."
	duty     string
	imports  []string // paths of other rows
	modules  []string // other modules
}

// matches reports whether the row is for a package.
func (r row) matches(path string) bool {
	base, tree := strings.CutSuffix(r.path, "/...")
	return path == base || tree && strings.HasPrefix(path, base+"/")
}

// parse reads the table.
func parse(text string) (rows []row, err error) {
	kind := ""
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if heading, ok := strings.CutPrefix(line, "= "); ok {
			kind = heading
			continue
		}
		r, err := parseRow(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", tableFile, i+1, err)
		}
		r.kind = kind
		rows = append(rows, r)
	}
	return rows, validate(rows)
}

func parseRow(line string) (r row, err error) {
	cells := strings.Split(line, "|")
	if len(cells) < 4 || len(cells) > 5 {
		return r, fmt.Errorf("%d cells: want 4 or 5", len(cells))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	r.path, r.duty, r.imports = cells[1], cells[2], strings.Fields(cells[3])
	if len(cells) == 5 {
		r.modules = strings.Fields(cells[4])
	}
	if cells[0] == "-" {
		return r, nil
	}
	place := strings.Fields(cells[0])
	if len(place) != 2 {
		return r, fmt.Errorf("place %q: want a row and a column", cells[0])
	}
	r.drawn = true
	if r.row, err = strconv.ParseFloat(place[0], 64); err != nil {
		return r, err
	}
	r.col, err = strconv.ParseFloat(place[1], 64)
	return r, err
}

// validate reports a table that cannot be drawn: a package that is listed twice or
// stands in another's place, an import that is not listed, or an arrow that does
// not lead down.
func validate(rows []row) error {
	for i, r := range rows {
		for _, other := range rows[:i] {
			switch {
			case other.path == r.path:
				return fmt.Errorf("%s is listed twice", r.path)
			case other.drawn && r.drawn && other.row == r.row && other.col == r.col:
				return fmt.Errorf("%s and %s have one place", other.path, r.path)
			}
		}
		for _, path := range r.imports {
			k := slices.IndexFunc(rows, func(o row) bool { return o.path == path })
			switch {
			case k < 0:
				return fmt.Errorf("%s may import %s, which is not listed", r.path, path)
			case r.drawn && rows[k].drawn && rows[k].row <= r.row:
				return fmt.Errorf("%s may import %s, which is not drawn below it", r.path, path)
			}
		}
	}
	return nil
}

// arrows returns, for each package of the picture, those of its imports there that
// do not follow from others: if a imports b and b imports c, the arrow from a to c
// is left out.
func arrows(rows []row) map[string][]string {
	direct, kept := drawnImports(rows), make(map[string][]string)
	for from, imports := range direct {
		for _, path := range imports {
			follows := slices.ContainsFunc(imports, func(via string) bool { return via != path && reaches(direct, via, path) })
			if !follows {
				kept[from] = append(kept[from], path)
			}
		}
	}
	return kept
}

// drawnImports returns the imports of each package of the picture that are in the
// picture too.
func drawnImports(rows []row) map[string][]string {
	drawn := make(map[string]bool)
	for _, r := range rows {
		drawn[r.path] = r.drawn
	}
	imports := make(map[string][]string)
	for _, r := range rows {
		for _, path := range r.imports {
			if r.drawn && drawn[path] {
				imports[r.path] = append(imports[r.path], path)
			}
		}
	}
	return imports
}

// reaches reports whether arrows lead from one package to another.
func reaches(arrows map[string][]string, from, to string) bool {
	return from == to || slices.ContainsFunc(arrows[from], func(next string) bool { return reaches(arrows, next, to) })
}

// The generated part of the page stands between these lines.
const (
	tableBegin = "<!-- packages.txt, by go generate -->\n"
	tableEnd   = "<!-- end -->\n"
)

// insert puts the table of packages into the page.
func insert(page string, rows []row) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return "", fmt.Errorf("%s has no lines %q and %q", pageFile, tableBegin, tableEnd)
	}
	return before + tableBegin + "\n" + markdown(rows) + "\n" + tableEnd + after, nil
}

// markdown returns the table as the page shows it.
func markdown(rows []row) string {
	var b strings.Builder
	b.WriteString("| package | contents | may import |\n|---|---|---|\n")
	for _, r := range rows {
		imports := make([]string, len(r.imports))
		for i, path := range r.imports {
			imports[i] = "`" + path + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.path, r.duty, strings.Join(imports, ", "))
	}
	return b.String()
}
