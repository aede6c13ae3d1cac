package shm

import (
	"os"
	"strings"
	"testing"
)

func TestARankJoinsOnce(t *testing.T) {
	memory, err := NewMemory(2, [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	cfg := Config{Rank: 1, Size: 2, Memory: memory}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"while it is there", "after it has left"} {
		if again, err := New(cfg); err == nil || !strings.Contains(err.Error(), "rank 1 has joined already") {
			t.Errorf("%s, a second rank 1 gets %v, %v", when, again, err)
		}
		e.Close()
	}
}

func TestMemoryOfAnotherSizeIsRefused(t *testing.T) {
	memory, err := NewMemory(2, [16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	copyOf := func(n int) *os.File {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		b := make([]byte, n)
		if _, err := memory.ReadAt(b[:min(n, headerLen)], 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
		return f
	}
	total := layoutOf(2).total()
	for _, n := range []int{1, headerLen - 1, headerLen, total - headerLen, total + headerLen} {
		if e, err := New(Config{Rank: 0, Size: 2, Memory: copyOf(n)}); err == nil {
			e.Close()
			t.Errorf("a file of %d bytes is taken for the memory of a job, of %d bytes", n, total)
		}
	}
	if e, err := New(Config{Rank: 0, Size: 3, Memory: memory}); err == nil {
		e.Close()
		t.Error("memory for 2 ranks is taken for that of 3")
	}
}
