package control

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"github.com/chorale-go/chorale/launch/internal/deadlock"
	"github.com/chorale-go/chorale/transport"
)

// A message is one line of the control protocol: a JSON object with one field.
//
// A rank connects to the launcher, which proves to the rank that it knows the job's
// secret. The rank sends its own proof, see package proof, and behind it
//
//	{"join":{"address":"127.0.0.1:40001","memory":"…"}}
//
// where address is the TCP address at which other ranks reach it, if it has one,
// and memory names the shared memory that it has mapped: ranks that send the same
// name share memory. A rank that was given shared memory and could not map it
// sends "fallbackReason":"…" instead of a name. The launcher answers with one of
//
//	{"joined":{}}
//	{"refused":"rank 3 has joined already"}
//
// With "errors":true in joined, the launcher prints the errors that it is sent.
//
// Where rank 0 takes the launcher's part, its answer comes when all ranks have joined, and
// says which of them share a host, see JoinedMessage.
//
// From then on, either side may send at any time. The rank sends
//
//	{"addressQuery":5}   asks for the address of rank 5
//	{"memoryQuery":5}    asks which memory rank 5 has mapped
//	{"failedPeer":5}     an operation failed because of rank 5
//	{"cmaDenied":true}   the system denied it cross-memory attach
//	{"stalls":[…]}       what has been waiting there for other ranks for long: see stall
//	{"abort":"…"}        it gave up, for this reason
//	{"error":{"text":"…","details":"…"}}   its program failed with this error
//	{"leave":true}       it is about to close its endpoint; answered by left
//
// and the launcher sends
//
//	{"addressReply":{"rank":5,"address":"127.0.0.1:40002"}}
//	{"memoryReply":{"rank":5,"memory":"…"}}
//	{"left":5}
//	{"lost":{"rank":5,"reason":"killed by signal 9 (killed)"}}
//	{"gaveUp":{"rank":5,"reason":"the disk is full"}}
//
// An address with "left":true is that of a rank that leaves: it may still wait there
// for others to take what it has sent. It is empty once the rank has closed its endpoint.
// With "aborted":"…" the rank gave up before, for this reason.
//
// The launcher answers a query about rank 5 when rank 5 has joined or ended. It
// announces a lost rank to all others at once. It does not announce a rank that
// ended with status 0: messages of that rank may still be in flight, and its
// connections show when they end. Where rank 0 takes the launcher's part, it announces a
// rank that gave up, too: a rank that is told of either ends, see EndTimeout. chorale run
// ends the ranks itself. When a rank finds the connection closed, the
// launcher is gone, and the rank's process ends.
type message struct {
	Join         *JoinMessage   `json:"join,omitempty"`
	Joined       *JoinedMessage `json:"joined,omitempty"`
	Refused      string         `json:"refused,omitempty"`
	AddressQuery *int           `json:"addressQuery,omitempty"`
	AddressReply *addressReply  `json:"addressReply,omitempty"`
	MemoryQuery  *int           `json:"memoryQuery,omitempty"`
	MemoryReply  *memoryReply   `json:"memoryReply,omitempty"`
	FailedPeer   *int           `json:"failedPeer,omitempty"`
	CMADenied    bool           `json:"cmaDenied,omitempty"`
	Stalls       *[]stall       `json:"stalls,omitempty"`
	Abort        string         `json:"abort,omitempty"`
	Error        *errorMessage  `json:"error,omitempty"`
	Leave        bool           `json:"leave,omitempty"`
	Left         *int           `json:"left,omitempty"`
	Lost         *lostMessage   `json:"lost,omitempty"`
	GaveUp       *lostMessage   `json:"gaveUp,omitempty"`
}

// A JoinMessage is what a rank says of itself. Host and Processors are for a rank that
// takes the launcher's part: the same name means the same host, and the processors are
// those that the ranks of that host share.
type JoinMessage struct {
	Address        string `json:"address,omitempty"`
	Memory         string `json:"memory,omitempty"`
	FallbackReason string `json:"fallbackReason,omitempty"`
	Host           string `json:"host,omitempty"`
	Processors     int    `json:"processors,omitempty"`
}

// A JoinedMessage says which ranks share a host: Hosts has a number for each rank, or is
// empty where all share one. Processors is then the number of the host that has the
// fewest.
type JoinedMessage struct {
	Hosts      []int `json:"hosts,omitempty"`
	Processors int   `json:"processors,omitempty"`
	Errors     bool  `json:"errors,omitempty"` // the launcher prints the errors that it is sent
}

// An errorMessage is the error of a rank's program. Ranks whose texts are equal share it;
// the details, as the stack of a panic, may differ.
type errorMessage struct {
	Text    string `json:"text"`
	Details string `json:"details,omitempty"`
}

// maxText and maxDetails are the lengths in bytes to which an error is cut. Details that
// take too much room when their bytes are escaped are left out.
const (
	maxText    = 1 << 10
	maxDetails = 6 << 10
)

// newErrorMessage returns the message of an error, within MaxMessage.
func newErrorMessage(text, details string) message {
	m := message{Error: &errorMessage{cut(text, maxText), cut(details, maxDetails)}}
	if line, _ := json.Marshal(m); len(line) >= MaxMessage { // strings can be marshaled
		m.Error.Details = ""
	}
	return m
}

type addressReply struct {
	Rank    int    `json:"rank"`
	Address string `json:"address"`
	Left    bool   `json:"left,omitempty"`
	Aborted string `json:"aborted,omitempty"`
}

// maxName bounds the address of a rank and the name of its memory, in bytes: a reply
// with either is within MaxMessage, however its bytes are escaped.
const maxName = 1 << 10

// maxReason is the length in bytes to which the reason of an abort is cut.
const maxReason = 1 << 10

type memoryReply struct {
	Rank   int    `json:"rank"`
	Memory string `json:"memory"`
}

// A stall is a [transport.Stall]. The list of a message is empty when nothing waits any
// more. It has [deadlock.MaxStalls] stalls of [deadlock.MaxPeers] peers at most.
type stall struct {
	Context  uint32 `json:"context"`
	Sequence uint32 `json:"sequence,omitempty"`
	Call     string `json:"call,omitempty"`
	Tag      int    `json:"tag,omitempty"`
	Peers    []int  `json:"peers,omitempty"`
	Wait     uint64 `json:"wait,omitempty"`
}

func writeStalls(stalls []transport.Stall) []stall {
	out := make([]stall, len(stalls))
	for i, s := range stalls {
		out[i] = stall{s.Signature.Context, s.Signature.Sequence, s.Signature.Call, s.Tag, s.Peers, s.Wait}
	}
	return out
}

// readStalls returns the stalls of a message, or none where the message has too many.
func readStalls(in []stall) (stalls []transport.Stall) {
	if len(in) > deadlock.MaxStalls {
		return nil
	}
	for _, s := range in {
		sig := transport.Signature{Context: s.Context, Sequence: s.Sequence, Call: s.Call}
		stalls = append(stalls, transport.Stall{Signature: sig, Tag: s.Tag, Peers: s.Peers, Wait: s.Wait})
	}
	return stalls
}

type lostMessage struct {
	Rank   int    `json:"rank"`
	Reason string `json:"reason"`
}

const (
	// MaxMessage is the length in bytes of the longest line that either side accepts.
	MaxMessage = 16 << 10

	// hostLen is what a rank adds at most to the answer that says which share a host.
	hostLen = 6
)

// messageScanner returns a scanner of the messages that r delivers, one a line of at most
// so many bytes.
func messageScanner(r io.Reader, longest int) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 512), longest)
	return s
}

// cut returns the beginning of a text, of at most so many bytes.
func cut(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}
