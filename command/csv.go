package command

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// printCSV prints a line for each row, under a line of names. The columns are the fields
// of the JSON form that hold one value, in its order and by its names; that of an object
// within it is network.links. Lists of words are one column, other lists are left out. An
// unknown value is empty.
func printCSV[T any](w io.Writer, rows []T) error {
	columns := columnsOf(reflect.TypeFor[T](), "", nil)
	out := csv.NewWriter(w)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.name
	}
	out.Write(cells) // Error returns its error
	for _, row := range rows {
		v := reflect.ValueOf(row)
		for i, c := range columns {
			cells[i] = cellOf(v.FieldByIndex(c.field))
		}
		out.Write(cells)
	}
	out.Flush()
	return out.Error()
}

// A csvColumn is a field of a row.
type csvColumn struct {
	name  string
	field []int
}

func columnsOf(t reflect.Type, prefix string, within []int) (all []csvColumn) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(within[:len(within):len(within)], i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := f.Type
		switch {
		case f.Anonymous:
			all = append(all, columnsOf(kind, prefix, at)...)
			continue
		case !f.IsExported() || name == "-":
			continue
		case kind.Kind() == reflect.Struct:
			all = append(all, columnsOf(kind, prefix+name+".", at)...)
			continue
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct && !kind.Elem().Implements(reflect.TypeFor[fmt.Stringer]()):
			continue
		}
		all = append(all, csvColumn{prefix + name, at})
	}
	return all
}

func cellOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return cellOf(v.Elem())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = cellOf(v.Index(i))
		}
		return strings.Join(words, "; ")
	}
	return fmt.Sprint(v.Interface())
}
