package chorale

import (
	"fmt"
	"reflect"
	"unsafe"
)

// bytesOf returns the memory of s.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// elements is the inverse of bytesOf.
func elements[T any](b []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if size == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// sameType reports whether two types are the same. Both are of the one type that implements
// reflect.Type, and are the same if they are the same pointer: comparing two interfaces calls
// a function.
func sameType(a, b reflect.Type) bool {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&a))[1] == (*[2]unsafe.Pointer)(unsafe.Pointer(&b))[1]
}

// typeName returns the name of a type. Those of the common ones are at hand: looking one
// up takes as long as a tenth of a short message.
func typeName[T any]() string {
	switch any((*T)(nil)).(type) {
	case *byte:
		return "uint8"
	case *int:
		return "int"
	case *int32:
		return "int32"
	case *int64:
		return "int64"
	case *float32:
		return "float32"
	case *float64:
		return "float64"
	}
	return reflect.TypeFor[T]().String()
}

// checkElement returns an error unless values of the type can be copied byte by byte
// into another process: their size is fixed, and they hold no pointers.
func checkElement(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		if err := checkElement(t.Elem()); err != nil {
			return fmt.Errorf("%v has elements that cannot be sent: %w", t, err)
		}
		return nil
	case reflect.Struct:
		for i := range t.NumField() {
			if err := checkElement(t.Field(i).Type); err != nil {
				return fmt.Errorf("%v.%s cannot be sent: %w", t, t.Field(i).Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%v is a %v: want numbers, booleans, and arrays and structs of them", t, t.Kind())
}
