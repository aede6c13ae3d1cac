// Package model prices communication: a [Model] is the rates of a network and its
// nodes, a [Cost] counts what is charged at each rate, and [Model.Time] multiplies
// the two.
//
// The model is that of Grama, Gupta, Karypis and Kumar, Introduction to Parallel
// Computing (2nd ed.), 2.5: a message of m words that crosses h links takes
// Ts + h·Th + m·Tw. It is linear, so costs add up and scale.
package model
