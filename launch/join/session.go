package join

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
)

const (
	maxShared = 32 << 10 // bytes of a value that rank 0 shares
	maxReason = 200      // bytes of why a rank has the job ended
)

// A Session is this process's connection to its launcher's server. Launchers end a
// job when a rank ends without [Session.Finalize], whatever its exit status is; so a
// rank keeps its session until it leaves the job.
//
// Its methods may be called by several goroutines at once, and then take turns.
type Session struct {
	name  string // the variables that say where the server is
	rank  int
	store store

	mu     sync.Mutex
	shared int   // calls of Share
	ended  error // the session is over
}

// A store is a key store for a job's ranks.
type store interface {
	maxValue() int // the bytes of a value
	// put offers a value, which is letters, digits and "._-", to all ranks at the next
	// fence.
	put(ctx context.Context, key, value string) error
	// fence waits for all ranks.
	fence(ctx context.Context) error
	// get returns what rank 0 has put before the last fence.
	get(ctx context.Context, key string) (string, error)
	abort(code int, reason string) error
	finalize(ctx context.Context) error
	close()
	lost() <-chan struct{}
}

var errOver = errors.New("the session with the launcher is over")

// Share returns rank 0's value in every rank. All ranks call it, equally often; the
// values of the other ranks are ignored. The value may have 32 KiB of any bytes.
//
// Share waits for all ranks until ctx ends. A rank that never comes is noticed by some
// launchers alone, so ctx should have a deadline.
func (s *Session) Share(ctx context.Context, value string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return "", s.ended
	}
	if s.rank == 0 && len(value) > maxShared {
		return "", fmt.Errorf("%s: a value of %d bytes cannot be shared: want at most %d", s.name, len(value), maxShared)
	}
	prefix := fmt.Sprintf("chorale-%d-", s.shared)
	s.shared++
	if s.rank == 0 {
		for i, part := range splitValue(value, s.store.maxValue()) {
			if err := s.store.put(ctx, prefix+strconv.Itoa(i), part); err != nil {
				return "", s.wrap(err)
			}
		}
	}
	if err := s.store.fence(ctx); err != nil {
		return "", s.wrap(err)
	}
	if s.rank == 0 {
		return value, nil
	}
	value, err := joinValue(func(i int) (string, error) {
		return s.store.get(ctx, prefix+strconv.Itoa(i))
	})
	return value, s.wrap(err)
}

func (s *Session) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// Abort asks the launcher to end all ranks of the job, with an exit code from 1 to 255,
// which not every launcher keeps. Most launchers kill this rank too, and then Abort does
// not return; it returns after 5 s at most. The caller then exits with the code. Of a long
// reason, the launcher gets the beginning.
func (s *Session) Abort(code int, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	s.ended = errOver
	return s.wrap(s.store.abort(code, reason[:min(len(reason), maxReason)]))
}

// Finalize tells the launcher that this rank leaves the job, and ends the session. From
// then on the launcher does not mind how the process ends.
func (s *Session) Finalize(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	s.ended = errOver
	err := s.store.finalize(ctx)
	s.store.close()
	return s.wrap(err)
}

// Gone is closed when the connection to the launcher ends before Finalize: the
// launcher has died.
func (s *Session) Gone() <-chan struct{} { return s.store.lost() }

// splitValue returns the parts in which a store holds a value, each of 1 to limit
// bytes. The first starts with the number of parts, the length of the text and its
// checksum, because some stores cut values without an error:
//
//	COUNT.LENGTH.CHECKSUM.TEXT
//
// The text is base64, of which every store leaves the bytes as they are.
func splitValue(value string, limit int) []string {
	text := base64.RawURLEncoding.EncodeToString([]byte(value))
	head := func(count int) string {
		return fmt.Sprintf("%04d.%05d.%08x.", count, len(text), crc32.ChecksumIEEE([]byte(text)))
	}
	count := (len(head(0)) + len(text) + limit - 1) / limit
	text = head(count) + text
	var parts []string
	for len(text) > limit {
		parts = append(parts, text[:limit])
		text = text[limit:]
	}
	return append(parts, text)
}

const (
	minValue = 64                       // bytes of a value that a store must hold
	maxParts = 2 * maxShared / minValue // of a value
)

// joinValue is the inverse of splitValue; part returns one of the parts. Its errors
// do not quote the value, which may be secret.
func joinValue(part func(int) (string, error)) (string, error) {
	first, err := part(0)
	if err != nil {
		return "", err
	}
	fields := strings.SplitN(first, ".", 4)
	if len(fields) != 4 {
		return "", fmt.Errorf("the launcher returns %d bytes, which do not start as rank 0's value does", len(first))
	}
	count, err := strconv.ParseUint(fields[0], 10, 31)
	length, err2 := strconv.ParseUint(fields[1], 10, 31)
	sum, err3 := strconv.ParseUint(fields[2], 16, 32)
	if err != nil || err2 != nil || err3 != nil || count == 0 || count > maxParts || length > 2*maxShared {
		return "", fmt.Errorf("the launcher returns %d bytes, which have no count, length and checksum as rank 0's value does", len(first))
	}
	var text strings.Builder
	text.WriteString(fields[3])
	for i := 1; i < int(count) && text.Len() <= int(length); i++ {
		more, err := part(i)
		if err != nil {
			return "", err
		}
		text.WriteString(more)
	}
	if text.Len() != int(length) {
		return "", fmt.Errorf("the launcher returns %d bytes of the %d that rank 0 has written: its store cuts values", text.Len(), length)
	}
	value, err := base64.RawURLEncoding.DecodeString(text.String())
	if err != nil || crc32.ChecksumIEEE([]byte(text.String())) != uint32(sum) {
		return "", errors.New("the launcher returns other bytes than rank 0 has written: its store changes values")
	}
	return string(value), nil
}
