package pagetest

import (
	"slices"
	"testing"
)

// The tests of the transports check the sections about them. What the first section
// says, those say too, except for the lengths of its examples.
func TestTheSummaryOfThePageHasTheNumbersOfItsSections(t *testing.T) {
	page := Page(t)
	values := map[int64]bool{}
	for _, heading := range []string{"Shared memory", "TCP", "Between goroutines"} {
		for _, m := range quoted.FindAllStringSubmatch(Section(t, page, heading), -1) {
			values[valueOf(m[1], m[2])] = true
		}
	}
	for _, m := range quantity.FindAllStringSubmatch(Section(t, page, "In brief"), -1) {
		if !values[valueOf(m[1], m[2])] && !slices.Contains([]string{"100 bytes", "10 KiB", "10 MiB"}, m[0]) {
			t.Errorf("%q is the value of no constant", m[0])
		}
	}
	for _, heading := range []string{"Progress", "Two at once"} {
		if m := quantity.FindString(Section(t, page, heading)); m != "" {
			t.Errorf("section %q says %q, which no test checks", heading, m)
		}
	}
}
