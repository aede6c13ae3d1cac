// Package ranklist writes lists of ranks as a person reads them.
package ranklist

import (
	"fmt"
	"strings"
)

// runsMax bounds the length of a list: what is beyond is "and others".
const runsMax = 20

// String returns ranks, in ascending order, as in "0–3, 7".
func String(ranks []int) string {
	var runs []string
	for i := 0; i < len(ranks); {
		end := i + 1
		for end < len(ranks) && ranks[end] == ranks[end-1]+1 {
			end++
		}
		run := fmt.Sprint(ranks[i])
		if end > i+1 {
			run += fmt.Sprintf("–%d", ranks[end-1])
		}
		runs = append(runs, run)
		i = end
	}
	if len(runs) > runsMax {
		runs = append(runs[:runsMax], "and others")
	}
	return strings.Join(runs, ", ")
}

// Name returns ranks, in ascending order, with what they are, as in "rank 3" and "ranks 0–3".
func Name(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + String(ranks)
	}
	return "ranks " + String(ranks)
}
