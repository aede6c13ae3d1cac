package proof

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A Secret is what the processes of a job know and no other process does. The packages fmt,
// log/slog and encoding/json do not print it.
type Secret [32]byte

// NewSecret makes a secret at random.
func NewSecret() (s Secret) {
	rand.Read(s[:]) // never fails
	return s
}

// ParseSecret is the inverse of [Secret.Reveal].
func ParseSecret(text string) (s Secret, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(s) {
		return s, errors.New("want 64 hexadecimal digits") // err would quote some of them
	}
	return Secret(b), nil
}

// Reveal returns the secret as 64 hexadecimal digits.
func (s Secret) Reveal() string { return hex.EncodeToString(s[:]) }

// Format implements [fmt.Formatter], and hides the secret from all verbs.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, "(secret)") }

// MarshalText implements [encoding.TextMarshaler], and hides the secret from loggers and
// encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Job returns what names the job in public. The secret does not follow from it.
func (s Secret) Job() (job [16]byte) {
	copy(job[:], s.derive("chorale job 1", len(job)))
	return job
}

func (s Secret) derive(purpose string, length int) []byte {
	key, err := hkdf.Key(sha256.New, s[:], nil, purpose, length)
	if err != nil {
		panic(err) // only too long a key is an error
	}
	return key
}

// SecretOf returns the secret of a job whose user has chosen a text of any length for it.
// Jobs with different names have different secrets, though the text is the same.
func SecretOf(text, job string) (s Secret) {
	key, err := hkdf.Key(sha256.New, []byte(text), []byte(job), "chorale secret 1", len(s))
	if err != nil {
		panic(err) // only too long a key is an error
	}
	return Secret(key)
}
