package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chorale-go/chorale/sim"
)

// A Scene is the subject of every picture except charts: schedules, and the
// result of their simulation.
type Scene struct {
	Title  string
	Parts  []sim.Part  // as passed to [sim.Run]
	Result *sim.Result // with its Log and Links: see [sim.Config].Record
}

// checkRecorded returns an error unless the scene has a log of all messages.
func checkRecorded(s Scene) error {
	if s.Result == nil || len(s.Result.Log) != s.Result.Messages {
		return fmt.Errorf("a simulation without its log: want one made with Record")
	}
	return nil
}

// titleOf returns the title of a scene; by default its algorithms.
func titleOf(s Scene) string {
	if s.Title != "" {
		return s.Title
	}
	var names []string
	for _, part := range s.Parts {
		name := part.Schedule.Collective.String() + " " + part.Schedule.Algorithm
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", then ")
}

// subtitleOf names the network of a scene, and counts its ranks, steps and
// messages.
func subtitleOf(s Scene) string {
	r := s.Result
	text := fmt.Sprintf("%v, %s, %s, %s", r.Config.Topology, plural(r.Ranks, "rank"), plural(stepsWithMessages(r), "step"), plural(r.Messages, "message"))
	if r.MaxLinkLoad > 1 {
		text += fmt.Sprintf("; up to %d messages of a step want the same link", r.MaxLinkLoad)
	}
	return text
}

// stepsWithMessages counts the steps that have a message. The last step may
// consist of local copies, which a network does not show.
func stepsWithMessages(r *sim.Result) (n int) {
	for _, s := range r.PerStep {
		if s.Messages > 0 {
			n++
		}
	}
	return n
}

// processorOf returns the processor that a rank runs on.
func processorOf(r *sim.Result, rank int) int {
	if r.Config.Placement == nil {
		return rank
	}
	return r.Config.Placement[rank]
}

// globalRank returns the rank of the scene that is the given rank of a part. The
// ranks are those of the part: see [sim.Part].
func globalRank(ranks []int, rank int) int {
	if ranks == nil {
		return rank
	}
	return ranks[rank]
}

// rootOf returns the root of a scene with a single rooted schedule, else -1.
func rootOf(s Scene) int {
	if len(s.Parts) != 1 || !s.Parts[0].Schedule.Collective.Rooted() {
		return -1
	}
	return globalRank(s.Parts[0].Ranks, s.Parts[0].Schedule.Root)
}
