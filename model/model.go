package model

// A Model is four rates, in any one unit of time. A word is the unit in which the
// caller counts its vectors: usually one element, or one byte.
type Model struct {
	Ts  float64 // start-up: per message, at its sender and receiver together
	Tw  float64 // per word of a message
	Th  float64 // per hop: per link that a message crosses
	Top float64 // per word combined
}

// Default returns the model that the commands assume if no rate is given: Ts 10,
// Tw 1, Th 0 and Top 0.
func Default() Model { return Model{Ts: 10, Tw: 1} }

// A Cost counts what is charged along the path that takes longest. Counts need not
// be whole numbers.
type Cost struct {
	Startups float64 // messages, one after another
	Words    float64 // words moved
	Hops     float64 // links crossed
	Combines float64 // words combined
}

// Time returns the time of c under m, in m's unit of time.
func (m Model) Time(c Cost) float64 {
	return c.Startups*m.Ts + c.Words*m.Tw + c.Hops*m.Th + c.Combines*m.Top
}

// Plus returns the cost of c followed by d.
func (c Cost) Plus(d Cost) Cost {
	return Cost{c.Startups + d.Startups, c.Words + d.Words, c.Hops + d.Hops, c.Combines + d.Combines}
}

// Times returns the cost of c repeated k times.
func (c Cost) Times(k float64) Cost {
	return Cost{k * c.Startups, k * c.Words, k * c.Hops, k * c.Combines}
}
