package kernel

import "reflect"

// plain returns the plainest loop that does op; nil if op does not fit.
func plain(op Op, kind reflect.Kind) Func {
	switch kind {
	case reflect.Bool:
		return plainBool(op)
	case reflect.Int:
		return plainInteger[int](op)
	case reflect.Int8:
		return plainInteger[int8](op)
	case reflect.Int16:
		return plainInteger[int16](op)
	case reflect.Int32:
		return plainInteger[int32](op)
	case reflect.Int64:
		return plainInteger[int64](op)
	case reflect.Uint:
		return plainInteger[uint](op)
	case reflect.Uint8:
		return plainInteger[uint8](op)
	case reflect.Uint16:
		return plainInteger[uint16](op)
	case reflect.Uint32:
		return plainInteger[uint32](op)
	case reflect.Uint64:
		return plainInteger[uint64](op)
	case reflect.Uintptr:
		return plainInteger[uintptr](op)
	case reflect.Float32:
		return plainReal[float32](op)
	case reflect.Float64:
		return plainReal[float64](op)
	case reflect.Complex64:
		return plainNumber[complex64](op)
	case reflect.Complex128:
		if op == Prod { // x * y, but that its products may be fused with their sum
			return each(func(x, y complex128) complex128 {
				return complex(
					float64(real(x)*real(y))-float64(imag(x)*imag(y)),
					float64(real(x)*imag(y))+float64(imag(x)*real(y)))
			})
		}
		return plainNumber[complex128](op)
	}
	return nil
}

func plainBool(op Op) Func {
	switch op {
	case LogicalAnd:
		return each(func(x, y bool) bool { return x && y })
	case LogicalOr:
		return each(func(x, y bool) bool { return x || y })
	case LogicalXor:
		return each(func(x, y bool) bool { return x != y })
	}
	return nil
}

func plainInteger[T integers](op Op) Func {
	switch op {
	case And:
		return each(func(x, y T) T { return x & y })
	case Or:
		return each(func(x, y T) T { return x | y })
	case Xor:
		return each(func(x, y T) T { return x ^ y })
	}
	return plainReal[T](op)
}

func plainReal[T reals](op Op) Func {
	switch op {
	case Min:
		return each(func(x, y T) T { return min(x, y) })
	case Max:
		return each(func(x, y T) T { return max(x, y) })
	}
	return plainNumber[T](op)
}

func plainNumber[T numbers](op Op) Func {
	switch op {
	case Sum:
		return each(func(x, y T) T { return x + y })
	case Prod:
		return each(func(x, y T) T { return x * y })
	}
	return nil
}

func each[T any](do func(x, y T) T) Func {
	return func(dst, a, b []byte) {
		d, x, y := views[T](dst, a, b)
		for i := range d {
			d[i] = do(x[i], y[i])
		}
	}
}
