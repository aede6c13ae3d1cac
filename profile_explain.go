package chorale

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/launch"
	"github.com/chorale-go/chorale/sched"
)

// explaining returns the command that explains a call, for a profile. It is empty where the
// command does not know what the call depends on: a schedule of the program's own, and a
// transport that is none of ours.
func (c *Comm) explaining(call *call) string {
	key, transport, on := &call.key, c.job.config.Transport, c.placement()
	if key.schedule != nil || on.err != nil || transport != "mpi" && !slices.Contains(launch.Transports, transport) {
		return ""
	}
	bytes := key.bytes(c.size, call.counts, int(key.elem.Size()))
	choice, err := c.algorithm(*key, bytes)
	if err != nil {
		return ""
	}
	words := []string{"chorale explain", key.collective.String(), fmt.Sprint("-n ", c.size)}
	add := func(needed bool, word string, value any) {
		if needed {
			words = append(words, strings.TrimSpace(fmt.Sprint(word, " ", value)))
		}
	}
	several := on.count > 1
	if several {
		transport = "tcp"
	}
	add(key.collective != sched.Barrier, "-m", algo.FormatBytes(bytes))
	add(true, "--transport", transport)
	add(on.text != "", "--hosts", on.text)
	add(several && on.text == "", "--processors", c.size) // each rank has a host
	add(key.root > 0 || key.collective == sched.Shift, "--root", key.root)
	add(key.collective.Combines() && !key.commutative, "--ordered", "")
	add(key.uneven != 0, "--uneven", "")
	add(key.algorithm != "" || choice.Forced != "", "--algorithm", choice.Algorithm)
	return strings.Join(words, " ")
}
