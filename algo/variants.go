package algo

import (
	"fmt"
	"strings"
)

// VariantBytes is the size of the vector that [Variants] has in mind: what it
// gives for a segment cuts such a vector in a few pieces.
const VariantBytes = 1000

// Variants returns the specs with which to try an algorithm on p ranks: its
// name alone, and each parameter with other values than its default, one at a
// time. Where p allows, there are two of them or more. Make their schedules for
// a vector of [VariantBytes], or the sizes of segments mean nothing.
func Variants(a Algorithm, p int) []string {
	specs := []string{a.Name}
	for i := range a.Params {
		for _, v := range a.Params[i].alternatives(p) {
			specs = append(specs, fmt.Sprintf("%s,%s=%s", a.Name, a.Params[i].Key, v))
		}
	}
	return specs
}

// alternatives returns values to try p with.
func (p *Param) alternatives(ranks int) (values []string) {
	if p.tries != nil {
		return p.tries(ranks)
	}
	for word := range strings.SplitSeq(p.Values, "|") {
		if word != p.Default {
			values = append(values, word)
		}
	}
	return values
}
