package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages whose pieces of code name files, packages and identifiers alone.
var pages = []string{"../architecture.md", "../glossary.md"}

func TestEveryFileAndNameOnThePagesExists(t *testing.T) {
	tree := os.DirFS("../..")
	declared := declarations(t, tree)
	for _, page := range pages {
		spans := codeSpans(t, page)
		if len(spans) < 30 {
			t.Errorf("%s: %d pieces of code: want more", page, len(spans))
		}
		for _, span := range spans {
			if why := unknown(tree, declared, span); why != "" {
				t.Errorf("%s: `%s`: %s", page, span, why)
			}
		}
	}
}

// codeSpans returns the pieces of code within the text of a page, not its blocks.
func codeSpans(t *testing.T, page string) (spans []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	prose := regexp.MustCompile("(?s)\n```.*?\n```\n").ReplaceAllString(string(text), "\n")
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(prose, -1) {
		spans = append(spans, m[1])
	}
	return spans
}

var (
	command    = regexp.MustCompile(`^(chorale|go|make|git) |^(--|-)\w`)
	variable   = regexp.MustCompile(`^CHORALE_[A-Z]+$`)
	foreign    = regexp.MustCompile(`^MPI_\w+$|^(context|errors)\.\w+$|^process_vm_readv$|^float64$`)
	literal    = regexp.MustCompile(`^"[^"]*"$|^CLAIM [A-Z]\d+$`)
	arguments  = regexp.MustCompile(`\([^()]*\)$`)
	identifier = regexp.MustCompile(`^\w+(\.\w+)*$`)
)

// unknown says what is wrong with a piece of code: a file or a directory that is
// not there, or an identifier that is not declared.
func unknown(tree fs.FS, declared map[string]bool, span string) string {
	span = arguments.ReplaceAllString(span, "") // of a call
	switch {
	case command.MatchString(span), variable.MatchString(span), foreign.MatchString(span), literal.MatchString(span):
		return ""
	case strings.HasSuffix(span, "/..."):
		return missing(tree, strings.TrimSuffix(span, "/..."))
	case strings.Contains(span, "/"), slices.Contains([]string{".go", ".md", ".txt"}, path.Ext(span)):
		return missing(tree, span)
	case !identifier.MatchString(span):
		return "neither a file, nor a name, nor a command"
	case declared[span]:
		return ""
	}
	if _, err := fs.Stat(tree, span); err == nil {
		return ""
	}
	return "declared nowhere"
}

func missing(tree fs.FS, file string) string {
	if _, err := fs.Stat(tree, strings.TrimSuffix(file, "/")); err != nil {
		return "no such file"
	}
	return ""
}

// declarations returns all names that the module's packages and tests declare: Name and package.Name of what is declared at the top level,
// Type.Member and Member of methods, and of the fields of structs and the methods
// of interfaces.
func declarations(t *testing.T, tree fs.FS) map[string]bool {
	t.Helper()
	names := map[string]bool{"chorale": true}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && file == "docs" {
			return fs.SkipDir // what the test declares itself
		}
		if err != nil || d.IsDir() || path.Ext(file) != ".go" {
			return err
		}
		source, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Base(file), source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		names[parsed.Name.Name] = true
		for _, decl := range parsed.Decls {
			for _, name := range declaredBy(decl) {
				names[name], names[parsed.Name.Name+"."+name] = true, true
				if _, member, ok := strings.Cut(name, "."); ok {
					names[member] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func declaredBy(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil {
			name = receiver(decl.Recv.List[0].Type) + "." + name
		}
		return []string{name}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
				for _, member := range members(spec.Type) {
					names = append(names, spec.Name.Name+"."+member)
				}
			}
		}
	}
	return names
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members returns the fields of a struct, or the methods of an interface.
func members(e ast.Expr) (names []string) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return nil
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestTheLinksOfAllPagesLeadToFiles(t *testing.T) {
	found, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(found, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := regexp.MustCompile("(?s)\n```.*?\n```\n").ReplaceAllString(string(text), "\n")
		prose = regexp.MustCompile("`[^`\n]+`").ReplaceAllString(prose, "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

// term begins an entry of the glossary.
var term = regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`)

func TestTheGlossaryIsInOrderAndHasEachTermOnce(t *testing.T) {
	text, err := os.ReadFile("../glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := term.FindAllStringSubmatch(string(text), -1)
	if len(entries) < 60 {
		t.Fatalf("%d entries: want more", len(entries))
	}
	before := ""
	for _, entry := range entries {
		key := strings.ToLower(strings.ReplaceAll(entry[1], "-", " "))
		if key <= before {
			t.Errorf("%q stands after %q", entry[1], before)
		}
		before = key
	}
}
