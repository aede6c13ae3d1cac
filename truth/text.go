package main

import (
	"fmt"
	"strconv"
)

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 0, 64) + " %" }

// digits formats a number with about three digits.
func digits(x float64) string {
	switch {
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
