package chorale

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"

	"github.com/chorale-go/chorale/transport"
)

// CreateGroup creates a communicator of some ranks, in the order given. Only they call
// it, all with the same list and the same tag; the other ranks of c do something else
// meanwhile, also on c. A rank that does not exist or is listed twice is an ErrArgument,
// and so is a list without the caller.
//
// Any number of goroutines may call CreateGroup at the same time, also during other calls
// on c. If several groups that share two ranks are created at the same time, each has a
// tag of its own; the tags have nothing to do with those of messages. Members that give other
// orders, or of which one has failed with this tag before, get an ErrArgument. Members
// that give other ranks do so too, or wait for each other until ctx ends. After an error,
// create the group with another tag.
//
// Each of k members sends ⌈log₂ k⌉ messages, or a few times as many. See [Comm.Split] for
// other errors.
func (c *Comm) CreateGroup(ctx context.Context, ranks []int, tag int) (*Comm, error) {
	const call = "create group"
	if err := c.checkPart(call); err != nil {
		return nil, err
	}
	switch {
	case ctx == nil:
		return nil, c.argumentErrorf(call, "%w", errNoContext)
	case !c.areRanks(ranks):
		return nil, c.argumentErrorf(call, "ranks %v: want ranks 0 to %d, each once", ranks, c.size-1)
	case !slices.Contains(ranks, c.rank):
		return nil, c.argumentErrorf(call, "ranks %v: want this rank, %d, among them: only they call it", ranks, c.rank)
	case tag < 0:
		return nil, c.argumentErrorf(call, "tag %d: want 0 or more", tag)
	}
	if err := c.job.endpoint.Revoked(c.identity.number); err != nil {
		return nil, c.failed(call, transport.Signature{}, nil, err)
	}
	g := c.subgroup(ranks)
	messages, number := c.creation.begin(c)
	m := &memberMessages{c: messages, call: call, number: number, list: ranks, ranks: slices.Sorted(slices.Values(ranks)), tag: tag}
	m.me = slices.Index(m.ranks, c.rank)
	s := search{members: m, call: call, parent: c, among: &g}
	found, err := s.find(ctx, offer{})
	if err != nil {
		return nil, err
	}
	return s.settle(ctx, c.job.newComm(g, found, s.base()))
}

// A creation has the communicator for the messages of CreateGroup.
type creation struct {
	mu    sync.Mutex
	comm  *Comm
	calls uint64
}

// The last contexts of a communicator.
const (
	resilientPart = 1<<contextBits - 1
	creationPart  = resilientPart - 1
)

// begin begins a call. It returns the communicator for its messages, and its number.
func (p *creation) begin(c *Comm) (*Comm, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comm == nil {
		p.comm = c.part(creationPart)
	}
	p.calls++
	return p.comm, p.calls
}

func (p *creation) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comm != nil {
		p.comm.close()
	}
}

// memberMessages are the messages by which the members of a group search.
type memberMessages struct {
	c      *Comm
	call   string
	number uint64 // of this rank's call, so that an earlier one that has failed is noticed
	list   []int
	ranks  []int // sorted, so that those who give them in another order meet as well
	me     int   // this rank's place among them
	tag    int
}

// A memberOffer is what a member offers.
type memberOffer struct {
	Offer offer
	Call  uint64
	List  uint64 // a digest of the list of members
}

// gather exchanges the offers twice: all members go on if all have seen the same ones.
func (m *memberMessages) gather(ctx context.Context, all []offer, mine offer) error {
	offers, err := allOf(ctx, m, memberOffer{mine, m.number, digest(0, m.list...)})
	if err != nil {
		return err
	}
	seen := uint64(0)
	for i, o := range offers {
		all[i] = o.Offer
		if o.List != offers[m.me].List {
			err = m.c.argumentErrorf(m.call, "ranks %v, tag %d: rank %d gives another list", m.list, m.tag, m.ranks[i])
		}
		seen = digest(seen, o.Offer.Free, o.Offer.Fresh, o.Call, o.List)
	}
	digests, confirmErr := allOf(ctx, m, seen)
	if err != nil || confirmErr != nil {
		return cmp.Or(err, confirmErr)
	}
	for i, d := range digests {
		if d != seen {
			return m.c.argumentErrorf(m.call, "ranks %v, tag %d: a call with this tag has failed before at rank %d, or another rank: want another tag", m.list, m.tag, m.ranks[i])
		}
	}
	return nil
}

func (m *memberMessages) settle(ctx context.Context) error {
	_, err := allOf(ctx, m, true)
	return err
}

func (m *memberMessages) sum(ctx context.Context, numbers []uint64) error {
	all, err := allOf(ctx, m, [128]uint64(numbers))
	if err != nil {
		return err
	}
	clear(numbers)
	for _, other := range all {
		for i := range numbers {
			numbers[i] += other[i]
		}
	}
	return nil
}

// allOf returns what all members contribute, in their order: the algorithm of Bruck et
// al. for all-gather, with tagged messages.
func allOf[T any](ctx context.Context, m *memberMessages, mine T) ([]T, error) {
	k := len(m.ranks)
	have := make([]T, 1, k) // of this member and those after it, cyclically
	have[0] = mine
	for n := 1; n < k; n *= 2 {
		part := min(n, k-n)
		to, from := m.ranks[(m.me+k-n)%k], m.ranks[(m.me+n)%k]
		s, err := SendRecv(ctx, m.c, have[n:n+part:n+part], from, have[:part], to, m.tag)
		if err == nil && s.Count != part || errors.As(err, new(*transport.SizeError)) || errors.As(err, new(*transport.TypeError)) {
			err = m.c.argumentErrorf(m.call, "ranks %v, tag %d: rank %d gives another list, or a call with this tag has failed before: want another tag", m.list, m.tag, from)
		}
		if err != nil {
			return nil, err
		}
		have = have[:n+part]
	}
	all := make([]T, k)
	for i := range have {
		all[(m.me+i)%k] = have[i]
	}
	return all, nil
}

// digest returns a number that differs, but for one case in 2⁶⁴, for other numbers.
func digest[T int | uint64](from uint64, numbers ...T) uint64 {
	for _, n := range numbers {
		from = mix64(bits.RotateLeft64(from, 1) ^ uint64(n))
	}
	return from
}
