package tcp

import (
	"context"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
)

// BenchmarkLetters has two ranks send a letter to and fro, or one pour letters
// on the other, which answers the last.
func BenchmarkLetters(b *testing.B) {
	for _, bytes := range []int{8, 4 << 10, 64 << 10, 1 << 20} {
		for _, what := range []string{"ping", "letters"} {
			name := fmt.Sprintf("%s/bytes=%d/", what, bytes)
			b.Run(name+"processes", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				job := processes(b, 2)
				job.perform(b, what, bytes, 10)
				b.ReportAllocs()
				b.ResetTimer()
				job.perform(b, what, bytes, b.N)
			})
			b.Run(name+"goroutines", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				inOneProcess(b, what, bytes)
			})
		}
	}
}

// playLetters does rounds of one pattern of letters between two ranks.
func (p *player) playLetters(what string, bytes, rounds int) error {
	ctx := context.Background()
	e, peer := p.Endpoint.(transport.Mailer), 1-p.Rank()
	stamp := transport.Stamp{Context: 1, Tag: 1}
	out, into := p.out[:bytes], p.into[:bytes]
	post := func() error { return e.Post(ctx, peer, stamp, "uint8", out) }
	take := func() error {
		_, err := e.Take(ctx, peer, stamp, "uint8", into)
		return err
	}
	first, second := post, take
	if p.Rank() == 1 {
		first, second = take, post
	}
	switch what {
	case "ping": // a round is there and back
		for range rounds {
			if err := first(); err != nil {
				return err
			}
			if err := second(); err != nil {
				return err
			}
		}
		return nil
	case "letters":
		for range rounds {
			if err := first(); err != nil {
				return err
			}
		}
		return second()
	}
	return fmt.Errorf("nobody plays %q", what)
}
