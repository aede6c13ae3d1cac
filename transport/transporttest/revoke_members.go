package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
)

// testRevokeMembers has two pairs of ranks use communicators of one number.
func testRevokeMembers(t *testing.T, start Start) {
	j := open(t, start, 4)
	j.connect()
	for rank, e := range j.ends {
		e.SetMembers(revoked, []int{rank &^ 1, rank | 1})
	}
	swapPair := func(ctx context.Context, e transport.Endpoint) error {
		return swap(ctx, e, inCommunicator(revoked), e.Rank()^1)
	}
	j.each(swapPair)
	why := revocation(0)
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, j.ends[3], inCommunicator(revoked), 2, make([]byte, 8))
	})
	j.ends[0].Revoke(revoked, why)
	checkSame(t, "rank 1", swapPair(j.ctx, j.ends[1]), why)
	j.each(func(ctx context.Context, e transport.Endpoint) error { return swapAll(ctx, e, sig, 8) })
	if err := errors.Join(send(j.ctx, j.ends[2], inCommunicator(revoked), 3, make([]byte, 8)), <-received); err != nil {
		t.Error(err)
	}
	j.mustAll(nil, nil, swapPair, swapPair)
	for _, e := range j.ends[2:] {
		if err := e.Revoked(revoked); err != nil {
			t.Errorf("rank %d: %v", e.Rank(), err)
		}
	}
}

// testResilient has rank 0 wait in the resilient context when the communicator is revoked.
func testResilient(t *testing.T, start Start) {
	j := open(t, start, 3)
	m := resilientMatch(revoked)
	early := transport.Match{Context: m.Context, Tag: m.Tag + 1}
	if err := sendTagged(j.ctx, j.ends[1], 2, early, tagged(1, 500)); err != nil {
		t.Fatal(err)
	}
	received := cluster.Begin(j.ctx, func(ctx context.Context) error { return recvTagged(ctx, j.ends[0], 1, m, tagged(2, 500)) })
	sent := startSend(j.ctx, j.ends[0], 1, early, tagged(3, 3<<20))
	why := revocation(2)
	j.ends[2].Revoke(revoked, why)
	for _, e := range j.ends {
		checkSame(t, fmt.Sprint("rank ", e.Rank()), swap(j.ctx, e, inCommunicator(revoked), (e.Rank()+1)%3), why)
	}
	late := cluster.Begin(j.ctx, func(context.Context) error { return waitFor(j.ends[0], sent) })
	if err := errors.Join(
		recvTagged(j.ctx, j.ends[2], 1, early, tagged(1, 500)),
		sendTagged(j.ctx, j.ends[1], 0, m, tagged(2, 500)), <-received,
		recvTagged(j.ctx, j.ends[1], 0, early, tagged(3, 3<<20)), <-late); err != nil {
		t.Errorf("what was in progress in the resilient context: %v", err)
	}
	for _, size := range taggedSizes {
		j.each(func(ctx context.Context, e transport.Endpoint) error { return swapTagged(ctx, e, m, size) })
	}
}

// testGivesUp has rank 1 give up, while ranks 0 and 2 wait for each other.
func testGivesUp(t *testing.T, start Start) {
	j := open(t, start, 3)
	const pair = revoked + 10
	for _, e := range j.ends {
		e.SetMembers(revoked, []int{0, 1, 2})
	}
	for _, rank := range []int{0, 2} {
		j.ends[rank].SetMembers(pair, []int{0, 2})
	}
	j.connect()
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, j.ends[0], inCommunicator(revoked), 2, make([]byte, 8))
	})
	posted := startRecv(j.ctx, j.ends[0], 2, matchIn(revoked), 8)
	going := startRecv(j.ctx, j.ends[0], 2, matchIn(pair), 8)
	resilient := startRecv(j.ctx, j.ends[0], 2, resilientMatch(revoked), 8)
	j.ends[1].Abort(errors.New("enough"))
	want := &transport.PeerError{Peer: 1, Err: transport.ErrAborted, Reason: "enough"}
	checkSame(t, "a step of rank 0", <-received, want)
	checkSame(t, "a receive of rank 0", waitFor(j.ends[0], posted), want)
	checkSame(t, "rank 2", recv(j.ctx, j.ends[2], inCommunicator(revoked), 0, make([]byte, 8)), want)
	if err := errors.Join(
		sendTagged(j.ctx, j.ends[2], 0, matchIn(pair), tagged(1, 8)), waitFor(j.ends[0], going),
		sendTagged(j.ctx, j.ends[2], 0, resilientMatch(revoked), tagged(1, 8)), waitFor(j.ends[0], resilient)); err != nil {
		t.Errorf("other communicators: %v", err)
	}
	for _, rank := range []int{0, 2} {
		checkSame(t, "a receive from the rank that has given up", recvTagged(j.ctx, j.ends[rank], 1, resilientMatch(revoked), nil), want)
	}
	stay := func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(e.Revoked(pair), swap(ctx, e, inCommunicator(pair), 2-e.Rank()))
	}
	j.mustAll(stay, nil, stay)
}

// testLeavesCommunicator has rank 1 leave. Only the communicator in which rank 0 waits for
// it is revoked.
func testLeavesCommunicator(t *testing.T, start Start) {
	j := open(t, start, 3)
	j.connect()
	received := cluster.Begin(j.ctx, func(ctx context.Context) error {
		return recv(ctx, j.ends[2], inCommunicator(revoked), 0, make([]byte, 8))
	})
	if err := j.ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	first := recv(j.ctx, j.ends[0], inCommunicator(revoked), 1, make([]byte, 8))
	checkPeer(t, first, 1, transport.ErrLeft)
	var want *transport.PeerError
	if errors.As(first, &want) {
		checkSame(t, "rank 2, which waits for rank 0", <-received, want)
	}
	stay := func(ctx context.Context, e transport.Endpoint) error {
		return errors.Join(
			e.Revoked(sound), swap(ctx, e, inCommunicator(sound), 2-e.Rank()),
			swap(ctx, e, sig, 2-e.Rank()))
	}
	j.mustAll(stay, nil, stay)
}

// testAnyOfMembers has ranks that are no members leave and give up.
func testAnyOfMembers(t *testing.T, start Start) {
	j := open(t, start, 4)
	j.ends[0].SetMembers(sound, []int{0, 1})
	j.ends[1].SetMembers(sound, []int{0, 1})
	j.ends[0].SetMembers(revoked, []int{0})
	j.connect()
	alone := startRecv(j.ctx, j.ends[0], transport.Any, matchIn(revoked), 8)
	both := startRecv(j.ctx, j.ends[0], transport.Any, matchIn(sound), 8)
	if err := j.ends[2].Close(); err != nil {
		t.Fatal(err)
	}
	j.ends[3].Abort(errors.New("enough"))
	checkPeer(t, recv(j.ctx, j.ends[0], sig, 3, nil), 3, transport.ErrAborted)
	if err := errors.Join(
		sendTagged(j.ctx, j.ends[0], 0, matchIn(revoked), tagged(2, 8)), waitFor(j.ends[0], alone),
		sendTagged(j.ctx, j.ends[1], 0, matchIn(sound), tagged(1, 8)), waitFor(j.ends[0], both)); err != nil {
		t.Error(err)
	}
	if err := j.ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := recvTagged(j.ctx, j.ends[0], transport.Any, matchIn(sound), nil); !errors.Is(err, transport.ErrAllLeft) {
		t.Errorf("all members have left: got %v, want %v", err, transport.ErrAllLeft)
	}
}
