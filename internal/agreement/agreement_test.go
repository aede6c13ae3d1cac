package agreement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// A network delivers the messages of members, in an order that a random source chooses
// among those that keep the order of each pair. A member crashes when it has sent a given
// number of messages: the next one is not sent.
type network struct {
	t       *testing.T
	random  *rand.Rand
	members []*Member
	queues  map[[2]int][]Message // by sender and receiver
	pairs   [][2]int             // senders and receivers whose queues are not empty
	sent    []int
	crashes []int // after how many messages a member crashes; -1 if it does not
	crashed []bool
	notices [][2]int // losses to be noticed: by whom, and who is lost
	decided []*Value // also of members that have crashed since
}

func contributionOf(member int) Value {
	return Value{Flags: ^(uint64(1) << (member % 64)), Number: uint32(10 + member*7%5)}
}

func newNetwork(t *testing.T, seed uint64, crashes []int) *network {
	n := &network{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), queues: make(map[[2]int][]Message), crashes: crashes,
		sent: make([]int, len(crashes)), crashed: make([]bool, len(crashes)), decided: make([]*Value, len(crashes)),
	}
	for i := range crashes {
		n.members = append(n.members, New(i, len(crashes), contributionOf(i), func(to int, m Message) { n.send(i, to, m) }))
	}
	return n
}

// A crash stops a member in the middle of what it does.
type crash struct{}

func (n *network) send(from, to int, m Message) {
	if n.sent[from] == n.crashes[from] {
		panic(crash{})
	}
	n.sent[from]++
	pair := [2]int{from, to}
	if len(n.queues[pair]) == 0 {
		n.pairs = append(n.pairs, pair)
	}
	n.queues[pair] = append(n.queues[pair], m)
}

// take takes the next message of the i-th pair.
func (n *network) take(i int) (pair [2]int, m Message) {
	pair = n.pairs[i]
	queue := n.queues[pair]
	m, n.queues[pair] = queue[0], queue[1:]
	if len(queue) == 1 {
		n.pairs = slices.Delete(n.pairs, i, i+1)
	}
	return pair, m
}

// do has a member do something, and notes a crash or a decision.
func (n *network) do(member int, f func(m *Member)) {
	if n.crashed[member] {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(crash); !ok {
				panic(p)
			}
			n.crash(member)
		}
	}()
	f(n.members[member])
	if v, ok := n.members[member].Decided(); ok && n.decided[member] == nil {
		n.decided[member] = &v
	}
}

func (n *network) crash(member int) {
	n.crashed[member] = true
	for other := range n.members {
		if other != member {
			n.notices = append(n.notices, [2]int{other, member})
		}
	}
}

// run runs the agreement until nothing is left to deliver.
func (n *network) run() {
	for i := range n.members {
		n.do(i, func(m *Member) { m.Start() })
	}
	for len(n.pairs)+len(n.notices) > 0 {
		i := n.random.IntN(len(n.pairs) + len(n.notices))
		if i < len(n.pairs) {
			pair, message := n.take(i)
			n.do(pair[1], func(m *Member) { m.Receive(pair[0], message) })
			continue
		}
		i -= len(n.pairs)
		notice := n.notices[i]
		n.notices = slices.Delete(n.notices, i, i+1)
		n.do(notice[0], func(m *Member) { m.Lose(notice[1]) })
	}
}

// check fails the test unless all that stay have decided, all on the same value, also those
// that crashed later, and the value combines the contributions of all but those it names,
// which have crashed.
func (n *network) check(what string) {
	n.t.Helper()
	var value *Value
	for i, v := range n.decided {
		switch {
		case v == nil && !n.crashed[i]:
			n.t.Fatalf("%s: member %d has not decided; it waits for %v", what, i, n.members[i].Awaited())
		case v == nil:
		case value == nil:
			value = v
		case !reflect.DeepEqual(*value, *v):
			n.t.Fatalf("%s: member %d has decided on %+v, another on %+v", what, i, *v, *value)
		}
	}
	if value == nil {
		return // all have crashed
	}
	want := Value{Flags: ^uint64(0), Lost: value.Lost}
	out := make(map[int]bool)
	for _, member := range value.Lost {
		if out[member] = true; !n.crashed[member] {
			n.t.Fatalf("%s: the value lacks member %d, which has not crashed", what, member)
		}
	}
	for i := range n.members {
		if c := contributionOf(i); !out[i] {
			want.Flags &= c.Flags
			want.Number = max(want.Number, c.Number)
		}
	}
	if !reflect.DeepEqual(*value, want) {
		n.t.Fatalf("%s: decided on %+v, want %+v", what, *value, want)
	}
}

// noCrash returns what p members do that never crash.
func noCrash(p int) []int {
	crashes := make([]int, p)
	for i := range crashes {
		crashes[i] = -1
	}
	return crashes
}

// mostSent is a bound of the messages that one of p members sends if another two crash.
func mostSent(p int) int { return 3*(p-1) + 6 }

const orders = 12 // of the messages, for each pattern of crashes

func TestWithoutALossAllMembersDecideOnWhatAllContribute(t *testing.T) {
	for p := 1; p <= 16; p++ {
		for seed := range uint64(orders) {
			n := newNetwork(t, seed, noCrash(p))
			n.run()
			n.check(fmt.Sprintf("p=%d seed=%d", p, seed))
			if v, _ := n.members[0].Decided(); len(v.Lost) > 0 {
				t.Fatalf("p=%d: decided without %v, although nobody was lost", p, v.Lost)
			}
		}
	}
}

func TestAMemberMayBeLostBeforeEachOfItsMessages(t *testing.T) {
	for p := 2; p <= 8; p++ {
		for member := range p {
			for after := range mostSent(p) {
				for seed := range uint64(orders) {
					crashes := noCrash(p)
					crashes[member] = after
					n := newNetwork(t, seed, crashes)
					n.run()
					n.check(fmt.Sprintf("p=%d: member %d crashes after %d messages, seed=%d", p, member, after, seed))
				}
			}
		}
	}
}

func TestTwoMembersMayBeLostBeforeAnyTwoOfTheirMessages(t *testing.T) {
	for p := 2; p <= 6; p++ {
		for first := range p {
			for second := range first {
				for a := range mostSent(p) {
					for b := range mostSent(p) {
						for seed := range uint64(3) {
							crashes := noCrash(p)
							crashes[first], crashes[second] = a, b
							n := newNetwork(t, seed, crashes)
							n.run()
							n.check(fmt.Sprintf("p=%d: members %d and %d crash after %d and %d messages, seed=%d", p, first, second, a, b, seed))
						}
					}
				}
			}
		}
	}
}

func TestAnyNumberOfUpTo64MembersMayBeLost(t *testing.T) {
	rounds := 600
	if testing.Short() {
		rounds = 60
	}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 2))
		p := 2 + random.IntN(63)
		crashes := noCrash(p)
		for range random.IntN(p + 1) {
			crashes[random.IntN(p)] = random.IntN(3 * p)
		}
		n := newNetwork(t, seed, crashes)
		n.run()
		n.check(fmt.Sprintf("p=%d crashes %v seed=%d", p, crashes, seed))
	}
}

// A member that is lost after it has decided, as the only one, has told nobody; the others
// decide on its value all the same.
func TestWhatALostMemberHasDecidedOnStands(t *testing.T) {
	alone := 0
	for seed := range uint64(200) {
		crashes := noCrash(4)
		crashes[0] = 3 // the coordinator proposes to three, and crashes before its first decide
		n := newNetwork(t, seed, crashes)
		n.run()
		n.check(fmt.Sprintf("seed=%d", seed))
		if v, ok := n.members[0].Decided(); ok {
			alone++
			if got := *n.decided[1]; !reflect.DeepEqual(got, v) {
				t.Fatalf("seed=%d: the lost member has decided on %+v, the others on %+v", seed, v, got)
			}
		}
	}
	if alone == 0 {
		t.Fatal("no order of messages has the coordinator decide before it is lost")
	}
}
