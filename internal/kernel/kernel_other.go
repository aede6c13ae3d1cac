//go:build !amd64

package kernel

import "reflect"

const best = loops

func assembly(path, Op, reflect.Kind) Func { return nil }
