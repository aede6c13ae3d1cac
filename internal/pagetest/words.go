package pagetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// AtomicFields returns the fields of a package's structs whose types are those of
// sync/atomic, as "struct.field".
func AtomicFields(t testing.TB, dir string) (fields []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					if isAtomic(field.Type) {
						fields = append(fields, spec.Name.Name+"."+name.Name)
					}
				}
			}
			return false
		})
	}
	return fields
}

// isAtomic reports whether a type is one of sync/atomic, or some of them.
func isAtomic(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.ArrayType:
		return isAtomic(t.Elt)
	case *ast.IndexExpr:
		return isAtomic(t.X)
	case *ast.SelectorExpr:
		pkg, ok := t.X.(*ast.Ident)
		return ok && pkg.Name == "atomic"
	}
	return false
}

// CheckWords tests that the table of a section of a page of docs has rows for words of
// memory and for no others. The first cell of a row names one or several, each between
// back quotes.
func CheckWords(t *testing.T, name, heading string, words []string) {
	t.Helper()
	listed := map[string]bool{}
	for _, row := range Rows(t, name, heading) {
		for i, word := range strings.Split(row[0], "`") {
			if i%2 == 1 {
				listed[word] = true
			}
		}
	}
	for _, word := range words {
		if !listed[word] {
			t.Errorf("section %q of docs/%s has no row for %s", heading, name, word)
		}
	}
	for word := range listed {
		if !slices.Contains(words, word) {
			t.Errorf("section %q of docs/%s has a row for %s, which does not exist", heading, name, word)
		}
	}
}
