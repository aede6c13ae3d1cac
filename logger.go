package chorale

import (
	"log/slog"

	"github.com/chorale-go/chorale/internal/logging"
)

// SetLogger sets the logger of the library, for all ranks of this process. It may be called
// at any time, by any goroutine. With nil, which it is at first, the library logs what the
// environment variable CHORALE_LOG says to standard error: events of the level debug, info,
// warn or error and higher ones; nothing if it is not set.
//
// A process logs that it has joined its job, perhaps in the place of a lost rank (info), that
// Grow has taken in new processes (info), that it reaches ranks of its host in a slower way than
// it could, or that the memory of its long messages was left in small pages (warn), that other
// ranks are lost (warn), and the error that ends its part in the job (error), each once. Other
// calls that succeed log nothing.
func SetLogger(l *slog.Logger) { logging.Set(l) }
