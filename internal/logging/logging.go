// Package logging has the logger of the library's packages. It discards everything unless
// the program or the environment says otherwise. Nothing is logged in a call that succeeds.
package logging

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// Variable has the library log events of a level, or a higher one, to standard error: debug,
// info, warn or error. A logger that the program sets takes its place.
const Variable = "CHORALE_LOG"

// Levels are the values of Variable.
var Levels = []string{"debug", "info", "warn", "error"}

var logger atomic.Pointer[slog.Logger]

// Set sets the logger; nil means what the environment says.
func Set(l *slog.Logger) { logger.Store(l) }

// Logger returns the logger, which is never nil.
func Logger() *slog.Logger {
	if l := logger.Load(); l != nil {
		return l
	}
	return fromEnvironment()
}

var fromEnvironment = sync.OnceValue(func() *slog.Logger {
	var level slog.Level
	text := os.Getenv(Variable)
	if text == "" {
		return slog.New(slog.DiscardHandler)
	}
	l := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: &level}))
	if err := level.UnmarshalText([]byte(text)); err != nil {
		l.Warn("no such level: want debug, info, warn or error", Variable, text)
	}
	return l
})
