package join

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A pmiServer is a PMI-1 server for the ranks of a job.
type pmiServer struct {
	size int
	cut  int // values are cut to so many bytes; 0 for not

	mu      sync.Mutex
	values  map[string]string
	longest int // bytes of a request
	waiting []net.Conn
}

func (s *pmiServer) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		for _, answer := range s.answer(conn, line) {
			io.WriteString(answer, s.text(line))
		}
	}
}

// answer returns the connections that get an answer to a request.
func (s *pmiServer) answer(conn net.Conn, line string) []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, len(line))
	words, _ := parsePMI(line)
	switch words["cmd"] {
	case "put":
		value := words["value"]
		if s.cut > 0 && len(value) > s.cut {
			value = value[:s.cut]
		}
		s.values[words["key"]] = value
	case "barrier_in":
		s.waiting = append(s.waiting, conn)
		if len(s.waiting) < s.size {
			return nil
		}
		all := s.waiting
		s.waiting = nil
		return all
	}
	return []net.Conn{conn}
}

func (s *pmiServer) text(line string) string {
	words, _ := parsePMI(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch words["cmd"] {
	case "init":
		return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
	case "get_maxes":
		return "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n"
	case "get_my_kvsname":
		return "cmd=my_kvsname rc=0 kvsname=" + strings.Repeat("k", maxKVSName) + "\n"
	case "put":
		return "cmd=put_result rc=0\n"
	case "barrier_in":
		return "cmd=barrier_out rc=0\n"
	case "get":
		return "cmd=get_result rc=0 value=" + s.values[words["key"]] + "\n"
	case "finalize":
		return "cmd=finalize_ack rc=0\n"
	}
	return "cmd=unknown rc=1\n"
}

// share has the ranks of a job share values, and returns what the last rank got.
func (s *pmiServer) share(ctx context.Context, values ...string) (got []string, err error) {
	s.values = map[string]string{}
	var ranks, servers sync.WaitGroup
	for rank := range s.size {
		client, server := net.Pipe()
		servers.Go(func() { s.serve(server) })
		ranks.Go(func() {
			p := &Place{Reason: "PMI_FD=5", Rank: rank, Size: s.size}
			p.connect = func(ctx context.Context, p *Place) (store, error) { return connectPMI(ctx, p, client, "") }
			session, connectErr := p.Connect(ctx)
			if connectErr != nil {
				err = connectErr
				return
			}
			for _, value := range values {
				shared, shareErr := session.Share(ctx, value)
				if rank == s.size-1 {
					got, err = append(got, shared), errors.Join(err, shareErr)
				}
			}
			session.Finalize(ctx)
		})
	}
	ranks.Wait()
	servers.Wait()
	return got, err
}

func TestValuesOfAnyLengthReachAllRanks(t *testing.T) {
	var values []string
	for _, length := range []int{0, 1, 64, 600, 650, 700, 899, 900, 901, 1800, maxShared} {
		values = append(values, strings.Repeat("\\ =;\n\x00é", length)[:length])
	}
	for _, size := range []int{1, 2, 5} {
		s := &pmiServer{size: size}
		got, err := s.share(t.Context(), values...)
		if err != nil || len(got) != len(values) {
			t.Fatalf("%d ranks: %d values, %v", size, len(got), err)
		}
		for i, value := range values {
			if got[i] != value {
				t.Errorf("%d ranks: the value of %d bytes has %d", size, len(value), len(got[i]))
			}
		}
		if s.longest >= 1000 {
			t.Errorf("a request has %d bytes", s.longest)
		}
	}
}

func TestAStoreThatCutsValuesIsNoticed(t *testing.T) {
	secret := strings.Repeat("secret", 300)
	for _, cut := range []int{1, 10, 20, 30, 100, 600} {
		s := &pmiServer{size: 2, cut: cut}
		_, err := s.share(t.Context(), secret)
		if err == nil || !strings.Contains(err.Error(), "the launcher returns") || strings.Contains(err.Error(), "c2Vjcm") {
			t.Errorf("cut to %d: %v", cut, err)
		}
	}
}

func TestAValueTooLongIsNotShared(t *testing.T) {
	s := &pmiServer{size: 1}
	_, err := s.share(t.Context(), strings.Repeat("x", maxShared+1))
	if err == nil || !strings.Contains(err.Error(), "a value of 32769 bytes cannot be shared: want at most 32768") {
		t.Error(err)
	}
}

// An abortedStore keeps the reason of an abort.
type abortedStore struct {
	store
	reason string
}

func (s *abortedStore) abort(_ int, reason string) error {
	s.reason = reason
	return nil
}

func TestTheReasonOfAnAbortIsBounded(t *testing.T) {
	for _, length := range []int{0, maxReason, maxReason + 1, 1 << 20} {
		s := new(abortedStore)
		if err := (&Session{store: s}).Abort(1, strings.Repeat("x", length)); err != nil || len(s.reason) != min(length, maxReason) {
			t.Errorf("of a reason of %d bytes, the launcher gets %d: %v", length, len(s.reason), err)
		}
	}
}

// FuzzSharedValue has a store return any parts. What is taken for a value is one that
// rank 0 could have shared.
func FuzzSharedValue(f *testing.F) {
	for _, value := range []string{"", "a", strings.Repeat("long", 100)} {
		f.Add(strings.Join(splitValue(value, minValue), "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts := strings.Split(text, "\n")
		value, err := joinValue(func(i int) (string, error) {
			if i < len(parts) {
				return parts[i], nil
			}
			return "", errors.New("no such key")
		})
		if err != nil {
			return
		}
		again, err := joinValue(func(i int) (string, error) { return splitValue(value, minValue)[i], nil })
		if err != nil || again != value {
			t.Errorf("%q: %q, %v", value, again, err)
		}
	})
}
