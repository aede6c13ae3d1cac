package command

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/profile"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/model"
)

const jsonPage = "../docs/json.md"

// Each block of the page is made from the type that the verb prints; that of show is what
// it prints.
func TestThePageOnJSONShowsTheShapesThatArePrinted(t *testing.T) {
	page, err := os.ReadFile(jsonPage)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := exec.Command("chorale", "show", "bcast", "-n", "2", "--algorithm", "binomial", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{
		"list": jsonShape(reflect.TypeFor[listing](), ""), "check": jsonShape(reflect.TypeFor[checkReport](), ""),
		"sim": jsonShape(reflect.TypeFor[simulated](), ""), "bench": jsonShape(reflect.TypeFor[measurement](), ""),
		"against": jsonShape(reflect.TypeFor[comparison](), ""),
		"tune":    jsonShape(reflect.TypeFor[model.Profile](), ""),
		"explain": jsonShape(reflect.TypeFor[explanation](), ""),
		"profile": jsonShape(reflect.TypeFor[profile.Report](), ""),
		"env":     jsonShape(reflect.TypeFor[launch.Report](), ""), "show": strings.TrimSpace(string(shown)),
	}
	var fresh strings.Builder
	for i, part := range strings.Split(string(page), "```") {
		if i > 0 {
			fresh.WriteString("```")
		}
		kind, _, _ := strings.Cut(part, "\n")
		if _, verb, isShape := strings.Cut(kind, " "); i%2 == 1 && isShape {
			part = kind + "\n" + shapes[verb] + "\n"
			delete(shapes, verb)
		}
		fresh.WriteString(part)
	}
	for verb := range shapes {
		t.Errorf("%s has no block for %s", jsonPage, verb)
	}
	switch {
	case fresh.String() == string(page):
	case *update:
		if err := os.WriteFile(jsonPage, []byte(fresh.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale: go test ./command -update rewrites it", jsonPage)
	}
}

// jsonShape writes the JSON form of a type, with the kinds of its values.
func jsonShape(t reflect.Type, indent string) string {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return `"…"`
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonShape(t.Elem(), indent) + " or null"
	case reflect.Slice:
		return "[" + jsonShape(t.Elem(), indent) + ", …]"
	case reflect.Struct:
		return "{\n" + strings.Join(jsonFields(t, indent+"  "), ",\n") + "\n" + indent + "}"
	case reflect.String:
		return `"…"`
	case reflect.Bool:
		return "true or false"
	}
	return "number"
}

func jsonFields(t reflect.Type, indent string) (all []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			all = append(all, jsonFields(f.Type, indent)...)
		case f.IsExported() && name != "-":
			if options == "omitempty" {
				name += "?"
			}
			all = append(all, fmt.Sprintf("%s%q: %s", indent, name, jsonShape(f.Type, indent)))
		}
	}
	return all
}

// The shapes name the fields of what is printed.
func TestThePageOnJSONNamesTheFieldsOfARealReport(t *testing.T) {
	out, err := exec.Command("chorale", "sim", "bcast", "-n", "4", "--topology", "linear", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var printed map[string]any
	if err := json.Unmarshal(out, &printed); err != nil {
		t.Fatal(err)
	}
	shape := jsonShape(reflect.TypeFor[simulated](), "")
	for name := range printed {
		if !strings.Contains(shape, "\n  \""+name+"\"") && !strings.Contains(shape, "\n  \""+name+"?\"") {
			t.Errorf("the shape of sim has no field %q", name)
		}
	}
}
