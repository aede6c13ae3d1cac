// Training fits a model to data that is distributed over the ranks: it classifies
// three species of iris by four measurements (softmax regression, by gradient
// descent). Each rank computes the gradient of its own flowers. The sum over all ranks
// updates the model, and every rank holds the same bits of it.
//
//	chorale run -n 5 ./examples/training
//	chorale run -n 5 ./examples/training -steps 5000
//
// It uses AllReduce: one per step, of the gradient and the loss together.
//
// The measurements, in iris.csv, are table I of R. A. Fisher, The use of
// multiple measurements in taxonomic problems, Annals of Eugenics 7 (1936): bare
// facts, in the public domain.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chorale-go/chorale"
)

//go:embed iris.csv
var table string

const (
	features = 4 + 1 // the last one is always 1
	species  = 3
	weights  = species * features
)

// A flower is one row of the table.
type flower struct {
	measures [features]float64
	species  int
}

func main() {
	steps := flag.Uint("steps", 1000, "the `number` of steps")
	flag.Parse()
	chorale.Main(func(ctx context.Context, c *chorale.Comm) error {
		learn, test, err := flowers()
		if err != nil {
			return err
		}
		var mine []flower
		for i := c.Rank(); i < len(learn); i += c.Size() {
			mine = append(mine, learn[i])
		}
		model, loss, err := train(mine, len(learn), int(*steps), func(sums []float64) error {
			return chorale.AllReduce(ctx, c, sums, sums, chorale.Sum)
		})
		if err != nil || c.Rank() > 0 {
			return err
		}
		serial, _, _ := train(learn, len(learn), int(*steps), func([]float64) error { return nil })
		for i := range model {
			if math.Abs(model[i]-serial[i]) > 1e-9 {
				return fmt.Errorf("weight %d is %v: one rank gets %v", i, model[i], serial[i])
			}
		}
		fmt.Printf("after %d steps: loss %.4f, right about %d of %d flowers it has learned from and %d of %d others\n",
			*steps, loss, right(model, learn), len(learn), right(model, test), len(test))
		return nil
	})
}

// flowers reads the table. Every fifth flower is kept for the test.
func flowers() (learn, test []flower, err error) {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := flower{measures: [features]float64{4: 1}}
		name, m := "", &f.measures
		if _, err := fmt.Sscanf(line, "%g,%g,%g,%g,%s", &m[0], &m[1], &m[2], &m[3], &name); err != nil {
			return nil, nil, fmt.Errorf("iris.csv: %q: %w", line, err)
		}
		f.species = slices.Index([]string{"setosa", "versicolor", "virginica"}, name)
		if (len(learn)+len(test))%5 == 4 {
			test = append(test, f)
		} else {
			learn = append(learn, f)
		}
	}
	return learn, test, nil
}

// train fits a model to n flowers, of which this rank has some. Reduce adds up the
// gradients of the ranks. The loss is that before the last step.
func train(mine []flower, n, steps int, reduce func([]float64) error) (model []float64, loss float64, err error) {
	model = make([]float64, weights)
	sums := make([]float64, weights+1) // the gradient, and the loss
	for range steps {
		clear(sums)
		for _, f := range mine {
			likely := predict(model, f)
			sums[weights] -= math.Log(likely[f.species])
			likely[f.species]--
			for s, d := range likely {
				for j, x := range f.measures {
					sums[s*features+j] += d * x
				}
			}
		}
		if err := reduce(sums); err != nil {
			return nil, 0, err
		}
		for i := range model {
			model[i] -= 0.1 / float64(n) * sums[i]
		}
		loss = sums[weights] / float64(n)
	}
	return model, loss, nil
}

// predict returns the probability of each species.
func predict(model []float64, f flower) (likely [species]float64) {
	total := 0.0
	for s := range likely {
		for j, x := range f.measures {
			likely[s] += model[s*features+j] * x
		}
		likely[s] = math.Exp(likely[s])
		total += likely[s]
	}
	for s := range likely {
		likely[s] /= total
	}
	return likely
}

// right counts the flowers whose species is predicted.
func right(model []float64, flowers []flower) (n int) {
	for _, f := range flowers {
		if likely := predict(model, f); likely[f.species] == max(likely[0], likely[1], likely[2]) {
			n++
		}
	}
	return n
}
