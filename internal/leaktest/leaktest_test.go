package leaktest

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestAGoroutineThatDoesNotEndIsFound(t *testing.T) {
	before := []goleak.Option{goleak.IgnoreCurrent()}
	end := make(chan bool)
	go func() { <-end }()
	if err := findWithin(0, before); err == nil || !strings.Contains(err.Error(), "TestAGoroutineThatDoesNotEndIsFound") {
		t.Errorf("got %v, want the goroutine's stack", err)
	}
	close(end)
	if err := Find(before...); err != nil {
		t.Error(err)
	}
}

// Package goleak alone would wait for less.
func TestAGoroutineThatEndsLateIsNotFound(t *testing.T) {
	before := goleak.IgnoreCurrent()
	go time.Sleep(time.Second)
	if err := Find(before); err != nil {
		t.Error(err)
	}
}
