package draw

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// plural returns "1 step", "2 steps" and so on.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// formatTime formats a time to six significant digits, as the page's script does.
func formatTime(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	if size := math.Abs(rounded); err != nil || size >= 1e15 || size < 1e-6 {
		return strconv.FormatFloat(rounded, 'g', -1, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// shortNumber formats a quantity to six significant digits.
func shortNumber(v float64) string {
	if v != 0 && (math.Abs(v) >= 1e15 || math.Abs(v) < 1e-5) {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// formatRanges formats numbers as in 0,1,4–7.
func formatRanges(numbers []int) string { return joinRanges(numbers, ",") }

// joinRanges joins numbers. Three or more consecutive numbers become a range.
func joinRanges(numbers []int, separator string) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i + 1
		for j < len(numbers) && numbers[j] == numbers[j-1]+1 {
			j++
		}
		if j-i > 2 {
			parts = append(parts, fmt.Sprintf("%d–%d", numbers[i], numbers[j-1]))
		} else {
			for _, n := range numbers[i:j] {
				parts = append(parts, strconv.Itoa(n))
			}
		}
		i = j
	}
	return strings.Join(parts, separator)
}
