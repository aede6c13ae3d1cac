package explain

// A Part is what one effect adds to the time of a call.
type Part struct {
	Name string  `json:"part"`
	Time float64 `json:"time"` // µs
}

// The parts of a time, in the order in which Parts returns them.
const (
	Startups   = "start-ups"       // the longest chain of messages, if they were empty
	Bytes      = "bytes"           // what their length adds
	Steps      = "calls and steps" // what these cost a rank beside its messages
	Combining  = "combining"
	Copying    = "copying"    // within a rank
	Ports      = "ports"      // messages that wait for another one at the same rank
	Processors = "processors" // ranks that wait for another one on the same processor
	Network    = "network"    // messages that share the link between their host and the others
	Memory     = "memory"     // messages that share its bandwidth
	Switching  = "switching"  // of processors between ranks
	Other      = "other"      // what remains without all of these
)

// An effect is removed from a machine by making it free.
type effect struct {
	part   string
	remove func(*experiment)
}

// boundless is the number of words per µs of a network that slows no message.
const boundless = 1e30

// effects are in the order in which they are removed. What ranks share goes first, so that
// what remains is one chain of messages on a machine that nobody else uses.
var effects = []effect{
	{Switching, func(e *experiment) { e.machine.Switch = 0 }},
	{Memory, func(e *experiment) { e.machine.Memory = 0 }},
	{Network, func(e *experiment) {
		if e.machine.Network > 0 {
			e.machine.Network = boundless
		}
	}},
	{Processors, func(e *experiment) { e.machine.Processors = 0 }},
	{Ports, func(e *experiment) {
		if e.machine.Send == nil {
			e.config.AllPort = true
			return
		}
		e.machine.Send = func(_, _, _ int) float64 { return 0 }
		e.machine.Receive = e.machine.Send
	}},
	{Copying, func(e *experiment) { e.machine.Copy = nil }},
	{Combining, func(e *experiment) { e.machine.Combine = func(int) float64 { return 0 } }},
	{Steps, func(e *experiment) { e.machine.Call, e.machine.Step = 0, 0 }},
	{Bytes, func(e *experiment) {
		message := e.machine.Message
		e.machine.Message = func(from, to, _ int, exchange bool) float64 { return message(from, to, 0, exchange) }
	}},
	{Startups, func(e *experiment) { e.machine.Message = func(_, _, _ int, _ bool) float64 { return 0 } }},
}

// Parts returns the time of a call and its parts, whose sum it is. The call is simulated
// again and again, each time without one more effect, and the part of an effect is what the
// time falls by. Messages that are first come, first served can take longer without
// something that delays others. Then a part is less than 0.
func (m *Machine) Parts(c Call) (time float64, parts []Part, err error) {
	s, err := c.Schedule()
	if err != nil {
		return 0, nil, err
	}
	e, err := m.experiment(c, s)
	if err != nil {
		return 0, nil, err
	}
	if time, err = e.run(); err != nil {
		return 0, nil, err
	}
	parts = make([]Part, len(effects)+1)
	rest := time
	for i, effect := range effects {
		effect.remove(&e)
		without, err := e.run()
		if err != nil {
			return 0, nil, err
		}
		parts[len(effects)-1-i] = Part{effect.part, rest - without}
		rest = without
	}
	parts[len(effects)] = Part{Other, rest}
	return time, parts, nil
}
