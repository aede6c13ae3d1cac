package shm

import "crypto/rand"

// Loopback makes the n endpoints of a job whose ranks all live in this process.
// Each maps the memory for itself, as processes would. It is for tests and for
// comparison: goroutines talk faster through package inproc.
func Loopback(n int) ([]*Endpoint, error) { return loopback(n, Config{}) }

func loopback(n int, cfg Config) ([]*Endpoint, error) {
	rand.Read(cfg.Job[:]) // never fails
	memory, err := NewMemory(n, cfg.Job)
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	ends := make([]*Endpoint, n)
	cfg.Memory, cfg.Size = memory, n
	for rank := range ends {
		cfg.Rank = rank
		if ends[rank], err = New(cfg); err != nil {
			for _, e := range ends[:rank] {
				e.Close()
			}
			return nil, err
		}
	}
	return ends, nil
}
