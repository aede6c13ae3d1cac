package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chorale-go/chorale"
)

// The patterns of overheads: what a message of a step takes of its sender, while its receiver
// comes late, and what it takes of its receiver, to which it has come before. They are the
// overheads of LogP, measured as its authors do: D. Culler, L. T. Liu, R. P. Martin,
// C. Yoshikawa: Assessing fast network interfaces, 1996.
const (
	sendOverhead    = "send-overhead"
	receiveOverhead = "receive-overhead"
)

// overheadMessages is how many messages follow each other in a sample: no more than any
// transport takes from a sender whose receiver is late.
const overheadMessages = 2

// Lateness is how much later than the sender the receiver of a message of some bytes comes, in
// a sample of an overhead. A sender that takes as long has waited for its receiver.
func Lateness(bytes int) time.Duration {
	return 100*time.Microsecond + time.Duration(bytes)*2*time.Nanosecond
}

// measureOverhead measures an overhead, between ranks 0 and 1, 2 and 3, and so on. The row is
// that of the slowest pair.
func (b *Bench) measureOverhead(ctx context.Context, cell Cell) (Row, error) {
	pair, err := b.Comm.Split(ctx, b.Comm.Rank()/2, b.Comm.Rank())
	if err != nil {
		return Row{}, err
	}
	defer pair.Free()
	buf := b.memory.out[:cell.Bytes]
	messages := func() error {
		for range overheadMessages {
			if err := chorale.Bcast(ctx, pair, buf, 0, chorale.WithAlgorithm("binomial")); err != nil {
				return err
			}
		}
		return nil
	}
	if err := b.verifyOverhead(pair, buf, messages); err != nil {
		return Row{}, err
	}
	// mine are what a message has taken of this rank, and how long the measurement has gone on.
	var mine, slowest [2]float64
	var samples []float64
	measured := cell.Pattern == sendOverhead && pair.Rank() == 0 || cell.Pattern == receiveOverhead && pair.Rank() == 1
	for start := time.Now(); time.Duration(slowest[1]) < b.Time && len(samples) < maxSamples || len(samples) < checkInterval; {
		if err := chorale.Barrier(ctx, b.Comm); err != nil {
			return Row{}, err
		}
		begin := time.Now()
		if pair.Rank() == 1 {
			for time.Since(begin) < Lateness(cell.Bytes) { // awake, as in a program that computes
			}
			begin = time.Now()
		}
		if err := messages(); err != nil {
			return Row{}, err
		}
		if mine = [2]float64{}; measured {
			mine[0] = sinceMicroseconds(begin)
		}
		mine[1] = float64(time.Since(start))
		if err := chorale.AllReduce(ctx, b.Comm, slowest[:], mine[:], chorale.Max); err != nil {
			return Row{}, err
		}
		samples = append(samples, max(0, slowest[0]-clockTime())/overheadMessages)
	}
	return Row{
		Call:       Call{Collective: cell.Name(), Algorithm: calls[cell.Pattern], Selected: calls[cell.Pattern], Transport: b.Transport, Ranks: b.Comm.Size(), Bytes: cell.Bytes},
		Iterations: overheadMessages * len(samples), Stable: stable(samples), Times: summarize(samples), Verified: b.Verify,
	}, nil
}

// verifyOverhead sends messages once, and compares every byte that has been received.
func (b *Bench) verifyOverhead(pair *chorale.Comm, buf []byte, messages func() error) error {
	for i := range buf {
		if buf[i] = byte(value(0, i)); pair.Rank() == 1 {
			buf[i] = poison[byte]()
		}
	}
	if err := messages(); err != nil || !b.Verify || pair.Size() == 1 {
		return err
	}
	for i, got := range buf {
		if want := byte(value(0, i)); got != want {
			return fmt.Errorf("an overhead on rank %d: byte %d is %d: want %d", b.Comm.Rank(), i, got, want)
		}
	}
	return nil
}

// clockTime returns what reading the clock twice takes, in µs: the least of some trials.
func clockTime() float64 {
	var trials [8]float64
	for i := range trials {
		trials[i] = sinceMicroseconds(time.Now())
	}
	return slices.Min(trials[:])
}
