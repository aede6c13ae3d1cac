package launch

import (
	"bufio"
	"encoding/json"
	"io"
)

// A message is one line of the control protocol: a JSON object with one field.
//
// A rank connects to the launcher and says
//
//	{"join":{"token":"…","rank":3,"address":"127.0.0.1:40001","memory":"…"}}
//
// where address is that at which other ranks reach it, if they do, and memory says
// which memory it has mapped: those that say the same share it. A rank that should
// have mapped one, but has not, says "without":"…" instead, and why. The answer is
// one of
//
//	{"joined":true}
//	{"refused":"rank 3 has joined already"}
//
// From then on, either side may speak at any time. The rank says
//
//	{"where":5}       asks for the address of rank 5
//	{"shares":5}      asks which memory rank 5 has mapped
//	{"blames":5}      an exchange failed on account of rank 5
//	{"denied":true}   the system did not let it read the memory of other ranks
//	{"leaves":true}   it is about to close its endpoint; answered by left
//
// and the launcher says
//
//	{"at":{"rank":5,"address":"127.0.0.1:40002"}}
//	{"maps":{"rank":5,"memory":"…"}}
//	{"left":5}
//	{"lost":{"rank":5,"reason":"killed by signal 9 (killed)"}}
//
// The launcher answers a question when rank 5 has joined or ended. It also says
// unasked when a rank is lost. It does not when a rank has ended well: what that
// has sent may still be on its way, and its connections say when they end. When
// a rank finds the connection closed, the launcher is gone, and the rank's
// process ends.
type message struct {
	Join    *joinMessage `json:"join,omitempty"`
	Joined  bool         `json:"joined,omitempty"`
	Refused string       `json:"refused,omitempty"`
	Where   *int         `json:"where,omitempty"`
	Shares  *int         `json:"shares,omitempty"`
	Blames  *int         `json:"blames,omitempty"`
	Denied  bool         `json:"denied,omitempty"`
	Leaves  bool         `json:"leaves,omitempty"`
	At      *atMessage   `json:"at,omitempty"`
	Maps    *mapsMessage `json:"maps,omitempty"`
	Left    *int         `json:"left,omitempty"`
	Lost    *lostMessage `json:"lost,omitempty"`
}

type joinMessage struct {
	Token   string `json:"token"`
	Rank    int    `json:"rank"`
	Address string `json:"address,omitempty"`
	Memory  string `json:"memory,omitempty"`
	Without string `json:"without,omitempty"`
}

type atMessage struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
}

type mapsMessage struct {
	Rank   int    `json:"rank"`
	Memory string `json:"memory"`
}

type lostMessage struct {
	Rank   int    `json:"rank"`
	Reason string `json:"reason"`
}

// longest is the length of the longest line that either side accepts.
const longest = 4 << 10

// lines returns a scanner of the messages that come from r.
func messages(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 512), longest)
	return s
}

func encode(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of this package marshal
	}
	return append(line, '\n')
}
