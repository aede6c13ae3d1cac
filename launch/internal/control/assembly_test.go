package control

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/stall"
)

// newAssemblyOf returns the control server of a rank, of a job of so many ranks.
func newAssemblyOf(t testing.TB, size int) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewServer(Config{
		Size: size, Secret: testSecret, Listener: l, Addresses: l.Addr().String(), OfRanks: true, Strangers: size,
		Hooks: Hooks{
			Report: t.Logf, Failed: func(err error) { t.Error(err) }, Stalled: func(r *stall.Report) { t.Error(r.Text()) },
			Dropped: func(int, bool) {}, Waiting: func(text string) { t.Error(text) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// joinAll has all ranks of a job join, and returns what they are told.
func joinAll(t testing.TB, c *Server) []JoinedMessage {
	t.Helper()
	told := make([]JoinedMessage, c.cfg.Size)
	var ranks sync.WaitGroup
	for rank := range c.cfg.Size {
		ranks.Go(func() {
			cfg := configOf(c.Address(), c.cfg.Size)
			cfg.Rank, cfg.OfRanks = rank, true
			host := JoinMessage{Host: fmt.Sprint("host", rank/8), Processors: 8}
			client, joined, err := Dial(t.Context(), cfg, saying(host))
			if err != nil {
				t.Error(err)
				return
			}
			told[rank] = joined
			client.Close()
		})
	}
	ranks.Wait()
	return told
}

func TestAThousandRanksJoin(t *testing.T) {
	size := 1000
	if testing.Short() {
		size = 100
	}
	want := JoinedMessage{Hosts: make([]int, size), Processors: 8}
	for rank := range want.Hosts {
		want.Hosts[rank] = rank / 8
	}
	for rank, told := range joinAll(t, newAssemblyOf(t, size)) {
		if diff := cmp.Diff(want, told); diff != "" {
			t.Fatalf("rank %d is told (-want +got):\n%s", rank, diff)
		}
	}
}

// BenchmarkJoin has ranks of one process join at once, with a socket each.
func BenchmarkJoin(b *testing.B) {
	for _, size := range []int{64, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				c := newAssemblyOf(b, size)
				joinAll(b, c)
				c.Close()
			}
		})
	}
}

// A rank waits for rank 0 to begin, but not for it to come back.
func TestARankThatWaitsForOthersEndsWithRankZero(t *testing.T) {
	c := newAssemblyOf(t, 3)
	cfg := configOf(c.Address(), 3)
	cfg.Rank, cfg.OfRanks, cfg.Early = 2, true, func(err error) bool { return errors.As(err, new(*network.DialError)) }
	failed := make(chan error)
	go func() {
		_, err := dialAs(t.Context(), cfg, JoinMessage{})
		failed <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); !c.HasMembers(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("rank 2 does not reach rank 0")
		}
	}
	c.Close()
	select {
	case err := <-failed:
		if err == nil || !strings.Contains(err.Error(), "rank 2 does not join its job: rank 0 has ended: ") {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("rank 2 waits for a rank 0 that has ended")
	}
}

func TestRanksLearnWhichOfThemHaveNotJoined(t *testing.T) {
	c := newAssemblyOf(t, 8)
	refused := make(chan error, 2)
	for _, rank := range []int{0, 3} {
		r := dialRaw(t, c, rank)
		r.send(joinLine(rank))
		go func() {
			r.in.Scan()
			if want := "of 8 ranks, these have not joined within 5m0s: 1–2, 4–7"; !strings.Contains(r.in.Text(), want) {
				refused <- fmt.Errorf("rank %d is told %q, want %q", rank, r.in.Text(), want)
				return
			}
			refused <- nil
		}()
	}
	for joined := 0; joined < 2; {
		c.mu.Lock()
		joined = 0
		for _, m := range c.members {
			if m.conn != nil {
				joined++
			}
		}
		c.mu.Unlock()
	}
	c.refuseAssembly()
	for range 2 {
		if err := <-refused; err != nil {
			t.Error(err)
		}
	}
}

// A timer may fire while the last rank joins.
func TestARankThatHasJoinedIsNotRefused(t *testing.T) {
	c := newAssemblyOf(t, 1)
	zero := dialRaw(t, c, 0)
	zero.send(joinLine(0))
	zero.expect(`{"joined":{"hosts":[0]}}`)
	c.noticeAssembly() // an error of the test, if it says anything
	c.refuseAssembly()
	zero.send(`{"addressQuery":0}`)
	zero.expect(`{"addressReply":{"rank":0,"address":"here:0"}}`)
}

// A rank of a launcher that restarts lost ones comes a second time.
func TestARankOfAnAssemblyJoinsOnce(t *testing.T) {
	c := newAssemblyOf(t, 2)
	dialRaw(t, c, 1).send(joinLine(1))
	for joined := false; !joined; {
		c.mu.Lock()
		joined = c.members[1].conn != nil
		c.mu.Unlock()
	}
	again := dialRaw(t, c, 1)
	again.send(joinLine(1))
	again.expect(`{"refused":"rank 1 has joined already"}`)
}

func TestARankIsLostWithItsConnection(t *testing.T) {
	c := newAssemblyOf(t, 2)
	zero, one := dialRaw(t, c, 0), dialRaw(t, c, 1)
	zero.send(joinLine(0))
	one.send(joinLine(1))
	zero.expect(`{"joined":{"hosts":[0,0]}}`)
	one.conn.Close()
	zero.expect(`{"lost":{"rank":1,"reason":"its connection to rank 0 ended"}}`)
}

func TestARankThatLeavesIsNotLost(t *testing.T) {
	c := newAssemblyOf(t, 2)
	zero, one := dialRaw(t, c, 0), dialRaw(t, c, 1)
	zero.send(joinLine(0))
	one.send(joinLine(1))
	one.expect(`{"joined":{"hosts":[0,0]}}`)
	one.send(`{"leave":true}`)
	one.expect(`{"left":1}`)
	one.conn.Close()
	c.FailedPeer(1) // waits for the end of its connection
	zero.expect(`{"joined":{"hosts":[0,0]}}`)
	zero.send(`{"addressQuery":1}`)
	zero.expect(`{"addressReply":{"rank":1,"address":"","left":true}}`)
}

func TestTheLayoutNumbersHostsAndHasTheFewestProcessors(t *testing.T) {
	for _, test := range []struct {
		hosts      string // of each rank
		processors map[byte]int
		want       JoinedMessage
	}{
		{"aaaa", map[byte]int{'a': 8}, JoinedMessage{Hosts: []int{0, 0, 0, 0}, Processors: 8}},
		{"aaaa", map[byte]int{'a': 2}, JoinedMessage{Hosts: []int{0, 0, 0, 0}, Processors: 2}},
		{"aabb", map[byte]int{'a': 2, 'b': 2}, JoinedMessage{Hosts: []int{0, 0, 1, 1}, Processors: 2}},
		{"baba", map[byte]int{'a': 2, 'b': 1}, JoinedMessage{Hosts: []int{0, 1, 0, 1}, Processors: 1}},
		{"abbb", map[byte]int{'a': 64, 'b': 1}, JoinedMessage{Hosts: []int{0, 1, 1, 1}, Processors: 1}},
	} {
		members := make([]member, len(test.hosts))
		for rank := range members {
			members[rank].Host = test.hosts[rank : rank+1]
			members[rank].Processors = test.processors[test.hosts[rank]]
		}
		if diff := cmp.Diff(test.want, layout(members)); diff != "" {
			t.Errorf("%s with processors %v (-want +got):\n%s", test.hosts, maps.Collect(maps.All(test.processors)), diff)
		}
	}
}

func TestADifferenceOfSelectionsNamesRanksAndHosts(t *testing.T) {
	for _, test := range []struct {
		hosts, digests string // of each rank; - for none
		want           string
	}{
		{"aabb", "1111", ""},
		{"aabb", "----", ""},
		{"aabb", "11--", "ranks 0–1 (a) 1, ranks 2–3 (b) none"},
		{"abab", "1121", "ranks 0–1, 3 (a, b) 1, rank 2 (a) 2"},
		{"abcdefg", "111112-", "ranks 0–4 (a, b, c and 2 more) 1, rank 5 (f) 2, rank 6 (g) none"},
		{"aaaaaa", "123456", "rank 0 (a) 1, rank 1 (a) 2, rank 2 (a) 3, and 3 other selections"},
	} {
		members := make([]member, len(test.hosts))
		for rank := range members {
			members[rank].Host = test.hosts[rank : rank+1]
			if d := test.digests[rank : rank+1]; d != "-" {
				members[rank].Selections = d
			}
		}
		want := test.want
		if want != "" {
			want = "the machine's profile has other selections for some ranks than for the rest: " + want
		}
		if got := layout(members).SelectionsDiffer; got != want {
			t.Errorf("%s with %s: got %q, want %q", test.hosts, test.digests, got, want)
		}
	}
}

func TestADigestThatIsNoneIsRefused(t *testing.T) {
	c := newAssemblyOf(t, 2)
	one := dialRaw(t, c, 1)
	one.send(`{"join":{"selections":"` + strings.Repeat("x", maxDigest+1) + `"}}`)
	one.expect(`{"refused":"the digest of its selections has 33 bytes: want at most 32"}`)
}
