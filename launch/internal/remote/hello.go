package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// A Hello is what an agent says of itself and of its host.
type Hello struct {
	Version    int    `json:"version"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Processors int    `json:"processors"`
}

const (
	// copyMagic begins the line with which CopyScript asks for the executable. What
	// uname says of the host follows.
	copyMagic = "chorale-copy "

	// EnvAgentDir names the directory of an agent that was copied.
	EnvAgentDir = "CHORALE_AGENT_DIR"

	// AgentMagic begins the line with which an agent begins. A Hello in JSON follows.
	AgentMagic = "chorale-agent "

	// AgentVersion is that of the protocol between launcher and agent.
	AgentVersion = 3

	// MaxHello bounds what a host prints before the end of that line, in bytes.
	MaxHello = 64 << 10

	// MaxOrders bounds the line with which the launcher answers, in bytes.
	MaxOrders = 16 << 20
)

// CopyScript returns a script that runs an agent. Its arguments are the length of the
// launcher's executable, the path of the agent and the arguments of that. If nothing is at
// the path, the script asks for the executable on standard output, reads it from standard
// input, and keeps it for as long as it runs, in a directory whose name begins with the
// prefix. It has nothing in it that a login shell finds between single quotes.
func CopyScript(prefix string) string {
	return `n=$1; shift; if [ -x "$1" ]; then exec "$@"; fi; shift; ` +
		`d=$(mktemp -d "${TMPDIR:-/tmp}/` + prefix + `XXXXXXXXXX") || exit; ` +
		`echo; echo "` + copyMagic + `$(uname -sm)"; head -c "$n" >"$d/chorale"; s=1; ` +
		`if [ $(($(wc -c <"$d/chorale"))) = "$n" ] && chmod 700 "$d/chorale"; then ` + EnvAgentDir + `="$d" "$d/chorale" "$@"; s=$?; fi; ` +
		`rm -rf "$d"; exit $s`
}

// ReadHello reads an agent's hello. Noise is what comes before. If there is no agent,
// sendCopy is called, at most once, with what uname says of the host.
func ReadHello(r *bufio.Reader, sendCopy func(system string) error) (h Hello, noise []byte, err error) {
	copied := false
	for {
		line, err := ReadLine(r, MaxHello)
		noise = append(append(noise, line...), '\n')
		switch {
		case errors.Is(err, errLongLine) || len(noise) > MaxHello:
			return h, noise, fmt.Errorf("more than %d bytes, and no agent has begun to speak", MaxHello)
		case err != nil:
			return h, noise, err
		}
		if system, found := bytes.CutPrefix(line, []byte(copyMagic)); found && !copied {
			copied = true
			if err := sendCopy(Printable(system, 100)); err != nil {
				return h, nil, err
			}
			continue
		}
		text, found := bytes.CutPrefix(line, []byte(AgentMagic))
		if !found {
			continue
		}
		noise = noise[:len(noise)-len(line)-1]
		switch err := json.Unmarshal(text, &h); {
		case err != nil:
			return h, noise, fmt.Errorf("its agent says %q: %w", Printable(text, 100), err)
		case h.Version != AgentVersion:
			return h, noise, fmt.Errorf("its chorale speaks version %d of the protocol between hosts, and this one version %d: want the same chorale on all hosts", h.Version, AgentVersion)
		case h.Processors < 1:
			return h, noise, fmt.Errorf("its agent has %d processors", h.Processors)
		}
		return h, noise, nil
	}
}

// errLongLine says that a line is longer than it may be.
var errLongLine = errors.New("the line is too long")

// ReadLine reads a line of at most limit bytes, without its end. At the end of r, it
// returns what there was of a line.
func ReadLine(r *bufio.Reader, limit int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return line, fmt.Errorf("%w: want at most %d bytes", errLongLine, limit)
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// Printable returns at most limit bytes of a text, its lines joined by semicolons, without
// what a terminal could take for a command, or show in another order than it is in.
func Printable(text []byte, limit int) string {
	var lines []string
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(strings.Map(func(c rune) rune {
			if !unicode.IsGraphic(c) || c == unicode.ReplacementChar {
				return ' '
			}
			return c
		}, string(line)))
		if line != "" {
			lines = append(lines, line)
		}
	}
	all := strings.Join(lines, "; ")
	if len(all) > limit {
		all = strings.ToValidUTF8(all[:limit], "") + "…"
	}
	return all
}
