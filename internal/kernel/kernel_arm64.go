package kernel

import "reflect"

const withNEON = loops + 1

var pathNames = []string{"loops", "neon"}

// best is what every processor of this architecture can do.
const best = withNEON

// assembly returns the kernel in assembly that needs no more than p; nil if
// there is none.
func assembly(p path, op Op, kind reflect.Kind) Func {
	if p >= withNEON {
		return neon[key{op, kind}]
	}
	return nil
}
