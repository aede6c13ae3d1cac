package algo

import (
	"fmt"
	"strings"
)

// VariantBytes is the size of the vector that [Variants] assumes: its segments
// cut such a vector in a few pieces.
const VariantBytes = 1000

// Variants returns specs for testing an algorithm on p ranks: its name alone,
// and each parameter with other values than its default, one at a time. Where p
// allows, there are at least two of them. Make their schedules for a vector of
// [VariantBytes], or the sizes of segments mean nothing.
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
	if p.variants != nil {
		return p.variants(ranks)
	}
	for word := range strings.SplitSeq(p.Values, "|") {
		if word != p.Default {
			values = append(values, word)
		}
	}
	return values
}
