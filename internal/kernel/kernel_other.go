//go:build !amd64 && !arm64

package kernel

import "reflect"

const best = loops

var pathNames = []string{"loops"}

func assembly(path, Op, reflect.Kind) Func { return nil }
