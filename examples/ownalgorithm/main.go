// Ownalgorithm is the command chorale with one algorithm more: a broadcast that goes
// around a ring in both directions at the same time, in half the steps of a chain.
//
//	go build -o mychorale ./examples/ownalgorithm
//	./mychorale list bcast
//	./mychorale check bcast -n 1..64 --algorithm both-ways
//	./mychorale bench bcast -n 4 --algorithm both-ways,binomial
//	./mychorale draw bcast -n 8 --algorithm both-ways -o both-ways.svg
//
// A program whose calls name the algorithm registers it, too.
package main

import (
	"fmt"
	"os"

	"github.com/chorale-go/chorale/algo"
	"github.com/chorale-go/chorale/command"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

func main() {
	if err := algo.Register(bothWays); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command.Main()
}

var bothWays = algo.Definition{
	Algorithm: algo.Algorithm{
		Collective: sched.Bcast,
		Name:       "both-ways",
		Formula:    "⌈p/2⌉(α + nβ)",
		Prefer:     "a ring whose links carry messages in both directions",
	},
	Cost: func(c algo.Call, n float64) model.Cost {
		if c.Ranks() == 1 {
			return model.Cost{}
		}
		steps := float64((c.Ranks() + 1) / 2)
		return model.Cost{Startups: steps, Words: steps * n}
	},
	Build: func(c algo.Call) algo.Programs {
		return algo.Programs{Blocks: 1, Program: func(b *sched.Builder, rank int) { travel(b, c, rank) }}
	},
}

// travel makes the program of a rank. Ranks count from the root: half of them lie to its
// right, and get the vector from the left; the others get it from the right.
func travel(b *sched.Builder, c algo.Call, rank int) {
	p, vector := c.Ranks(), sched.Range{Lo: 0, Hi: 1}
	at := (rank - c.Root() + p) % p
	number := func(at int) int { return (at + c.Root() + p) % p }
	last := p / 2 // of those to the right
	if at == 0 {
		b.Copy(sched.In, vector, sched.Out, 0, sched.Replace)
		if p > 1 {
			b.Send(sched.In, vector, number(1))
		}
		if last+1 < p {
			b.EndStep()
			b.Send(sched.In, vector, number(-1))
		}
		b.EndStep()
		return
	}
	from, to := at-1, at+1
	if at > last {
		from, to = to, from
	}
	b.Recv(number(from), sched.Out, vector, sched.Replace)
	b.EndStep()
	if at != last && at != last+1 {
		b.Send(sched.Out, vector, number(to))
		b.EndStep()
	}
}
