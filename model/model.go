// Package model prices communication. A [Model] says what a network and its
// nodes charge, a [Cost] says how much of each charge something takes, and
// [Model.Time] multiplies the two.
//
// The model is the one of Grama, Gupta, Karypis and Kumar, Introduction to
// Parallel Computing (2nd ed.), 2.5: a message of m words that crosses h links
// takes Ts + h·Th + m·Tw. It is linear, so costs add up and scale.
package model

// A Model holds the four charges, in any one unit of time. A word is whatever
// the caller counts its vectors in: one element, usually, or one byte.
type Model struct {
	Ts  float64 // start-up: per message, at its sender and receiver together
	Tw  float64 // per word of a message
	Th  float64 // per hop: per link that a message crosses
	Top float64 // per word combined
}

// Default returns the model that is assumed where none is given: Ts 10, Tw 1,
// and nothing for hops and combining.
func Default() Model { return Model{Ts: 10, Tw: 1} }

// A Cost counts what is charged, along the path that takes longest.
type Cost struct {
	Startups float64 // messages, one after another
	Words    float64 // words moved
	Hops     float64 // links crossed
	Combines float64 // words combined
}

// Time returns what c takes under m, in m's unit of time.
func (m Model) Time(c Cost) float64 {
	return c.Startups*m.Ts + c.Words*m.Tw + c.Hops*m.Th + c.Combines*m.Top
}

// Plus returns the cost of c followed by d.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Startups + d.Startups, c.Words + d.Words, c.Hops + d.Hops, c.Combines + d.Combines}
}

// Times returns the cost of c done k times, one after another.
func (c Cost) Times(k float64) Cost {
	return Cost{k * c.Startups, k * c.Words, k * c.Hops, k * c.Combines}
}
