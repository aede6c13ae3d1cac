package control

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"github.com/chorale-go/chorale/internal/deadlock"
	"github.com/chorale-go/chorale/internal/failure"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/model"
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
// With "errors":true in joined, the launcher prints the errors that it is sent. With
// "selections":[…], these are the rules by which all ranks choose algorithms.
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
//	{"stalls":[…]}       what has been waiting there for other ranks for long: see stallMessage
//	{"abort":"…"}        it gave up, for this reason
//	{"error":{"text":"…","details":"…"}}   its program failed with this error; of a collective, with the call: see package failure
//	{"profile":"…"}      a part of what it has recorded of its calls, in base64
//	{"metrics":{…}}      the sums of its calls until now
//	{"trace":"…"}        a part of the timeline that it has recorded, in base64
//	{"clockQuery":7}     asks for the time on the launcher's host
//	{"leave":true}       it is about to close its endpoint; answered by left
//	{"state":{"query":7,"rank":{…}}}   what waits there, and where: answers stateQuery 7
//
// and the launcher sends
//
//	{"addressReply":{"rank":5,"address":"127.0.0.1:40002"}}
//	{"memoryReply":{"rank":5,"memory":"…"}}
//	{"left":5}
//	{"lost":{"rank":5,"reason":"killed by signal 9 (killed)"}}
//	{"gaveUp":{"rank":5,"reason":"the disk is full"}}
//	{"stateQuery":7}     asks what the rank does
//	{"clockReply":{"query":7,"host":"…","time":…}}   the launcher's host and the time there, in nanoseconds
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
//
// # Groups
//
// Ranks of chorale run may make a new endpoint together, with processes that the launcher
// has started in the place of lost ranks. Each member sends, with ranks of the job,
//
//	{"regroup":{"id":7,"members":[0,1,2]}}   the same of all members
//	{"regroup":{"id":7,"gaveUp":"…"}}        it no longer waits for the answer to 7, or for the others behind it
//
// and such a process sends, as its first message,
//
//	{"newcomer":true}   in the place of join
//
// When all members have sent regroup, the launcher makes a group of them and of the newcomers
// that wait, and answers all of these
//
//	{"regrouped":{"id":7,"number":1,"control":"127.0.0.1:4712","ranks":[0,1,2,3],"hosts":[…]}}
//	{"regroupFailed":{"id":7,"rank":2,"reason":"…"}}   since rank 2 is lost; with "left":true or "gaveUp":true it has left, or given up
//	{"dismissed":true}   to a newcomer, since no other rank is there any more
//
// At control, the group has a control server of its own. Its ranks are counted in the order
// of the list, and its secret is derived from that of the job and the number, so that nothing
// of one group is taken for that of another. They join there as at the first one, with two
// differences. They are answered together, when all have joined. If one is lost before, or
// gives up, all get lost in the place of joined, also those that join later: so all have the
// new endpoint, or none. A newcomer keeps its first connection until it has joined, and
// then sends leave there; if that ends before, the newcomer has given up. It may wait again.
type message struct {
	Join         *JoinMessage     `json:"join,omitempty"`
	Joined       *JoinedMessage   `json:"joined,omitempty"`
	Refused      string           `json:"refused,omitempty"`
	AddressQuery *int             `json:"addressQuery,omitempty"`
	AddressReply *addressReply    `json:"addressReply,omitempty"`
	MemoryQuery  *int             `json:"memoryQuery,omitempty"`
	MemoryReply  *memoryReply     `json:"memoryReply,omitempty"`
	FailedPeer   *int             `json:"failedPeer,omitempty"`
	CMADenied    bool             `json:"cmaDenied,omitempty"`
	Stalls       *[]stallMessage  `json:"stalls,omitempty"`
	Abort        string           `json:"abort,omitempty"`
	Error        *failure.Failure `json:"error,omitempty"`
	Profile      []byte           `json:"profile,omitempty"`
	Metrics      json.RawMessage  `json:"metrics,omitempty"`
	Trace        []byte           `json:"trace,omitempty"`
	ClockQuery   uint32           `json:"clockQuery,omitempty"` // from 1 on
	ClockReply   *clockReply      `json:"clockReply,omitempty"`
	Leave        bool             `json:"leave,omitempty"`
	Left         *int             `json:"left,omitempty"`
	Lost         *lostMessage     `json:"lost,omitempty"`
	GaveUp       *lostMessage     `json:"gaveUp,omitempty"`
	StateQuery   uint32           `json:"stateQuery,omitempty"`
	State        *stateMessage    `json:"state,omitempty"`

	Newcomer      bool            `json:"newcomer,omitempty"`
	Dismissed     bool            `json:"dismissed,omitempty"`
	Regroup       *RegroupMessage `json:"regroup,omitempty"`
	Regrouped     *Group          `json:"regrouped,omitempty"`
	RegroupFailed *RegroupFailure `json:"regroupFailed,omitempty"`
}

// A JoinMessage is what a rank says of itself. Host, Processors and Selections are for a rank
// that takes the launcher's part: the same name means the same host, the processors are
// those that the ranks of that host share, and Selections is the digest of those that the rank
// has found on its host, "" of none.
type JoinMessage struct {
	Address        string `json:"address,omitempty"`
	Memory         string `json:"memory,omitempty"`
	FallbackReason string `json:"fallbackReason,omitempty"`
	Host           string `json:"host,omitempty"`
	Processors     int    `json:"processors,omitempty"`
	Selections     string `json:"selections,omitempty"`
}

// A JoinedMessage says which ranks share a host: Hosts has a number for each rank, or is
// empty where all share one. Processors is then the number of the host that has the
// fewest. All ranks choose algorithms by the same selections: by those of a launcher, which
// are in Selections, or, where a rank takes its part, each by what it has found itself, unless
// SelectionsDiffer says why no rank does.
type JoinedMessage struct {
	Hosts      []int `json:"hosts,omitempty"`
	Processors int   `json:"processors,omitempty"`
	Errors     bool  `json:"errors,omitempty"` // the launcher prints the errors that it is sent

	Selections       []model.Selection `json:"selections,omitempty"` // of MaxSelections at most
	Unselected       string            `json:"unselected,omitempty"` // why a launcher has none, if there is a reason
	SelectionsDiffer string            `json:"selectionsDiffer,omitempty"`
}

// MaxSelections bounds the length in bytes of the selections of an answer.
const MaxSelections = 1 << 20

// The lengths in bytes to which an error is cut. Details that take too much room when their
// bytes are escaped are left out.
const (
	maxText    = 1 << 10
	maxDetails = 6 << 10
	maxWhere   = 128
)

// newErrorMessage returns the message of an error, within MaxMessage.
func newErrorMessage(f failure.Failure) message {
	f = cutFailure(f)
	m := message{Error: &f}
	if line, _ := json.Marshal(m); len(line) >= MaxMessage { // strings can be marshaled
		f.Details = ""
	}
	return m
}

func cutFailure(f failure.Failure) failure.Failure {
	f.Text, f.Details = cut(f.Text, maxText), cut(f.Details, maxDetails)
	f.Call, f.Theirs = cutCall(f.Call), cutCall(f.Theirs)
	return f
}

func cutCall(c *failure.Call) *failure.Call {
	if c == nil {
		return nil
	}
	short := *c
	short.Text, short.Where = cut(c.Text, deadlock.MaxCall), cut(c.Where, maxWhere)
	return &short
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

// A stallMessage is a [transport.Stall]. The list of a message is empty when nothing waits any
// more. It has [deadlock.MaxStalls] stalls of [deadlock.MaxPeers] peers at most.
type stallMessage struct {
	Context  uint32 `json:"context"`
	Sequence uint32 `json:"sequence,omitempty"`
	Call     string `json:"call,omitempty"`
	Tag      int    `json:"tag,omitempty"`
	Peers    []int  `json:"peers,omitempty"`
	Wait     uint64 `json:"wait,omitempty"`
	Step     int    `json:"step,omitempty"`
	Message  string `json:"message,omitempty"`
}

func writeStalls(stalls []transport.Stall) []stallMessage {
	out := make([]stallMessage, len(stalls))
	for i, s := range stalls {
		out[i] = stallMessage{s.Signature.Context, s.Signature.Sequence, s.Signature.Call, s.Tag, s.Peers, s.Wait, s.Step, s.Message}
	}
	return out
}

// readStalls returns the stalls of a message, or none where the message has too many.
func readStalls(in []stallMessage) (stalls []transport.Stall) {
	if len(in) > deadlock.MaxStalls {
		return nil
	}
	for _, s := range in {
		sig := transport.Signature{Context: s.Context, Sequence: s.Sequence, Call: s.Call}
		stalls = append(stalls, transport.Stall{Signature: sig, Tag: s.Tag, Peers: s.Peers, Wait: s.Wait, Step: s.Step, Message: s.Message})
	}
	return stalls
}

// A stateMessage says what a rank does.
type stateMessage struct {
	Query uint32     `json:"query"`
	Rank  stall.Rank `json:"rank"`
}

// newStateMessage returns a message within MaxMessage: stacks that have no room are counted.
func newStateMessage(query uint32, rank stall.Rank) message {
	m := message{State: &stateMessage{query, rank}}
	r := &m.State.Rank
	for {
		line, _ := json.Marshal(m) // strings can be marshaled
		switch n := len(r.Goroutines) - 1; {
		case len(line) < MaxMessage:
			return m
		case n >= 0:
			r.Goroutines, r.More = r.Goroutines[:n], r.More+1
		case len(r.Waits) > 0:
			r.Waits, r.MoreWaits = r.Waits[:len(r.Waits)-1], r.MoreWaits+1
		default:
			r.Calls = nil
		}
	}
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
