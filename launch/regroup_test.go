package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/launch/internal/guard"
	"github.com/chorale-go/chorale/transport"
)

// regroupRanks ROUND… has ranks of the job end in each round, as in 1,2 for two of them, - for
// none, or agent:2,3 for all of an agent, which is killed. The others and the newcomers regroup after it. In the end, each process says what
// its last endpoint is.
func regroupRanks(rounds []string) error {
	ctx := context.Background()
	ep, env, err := Join(ctx)
	if err != nil {
		return err
	}
	var eps []transport.Endpoint
	defer func() {
		for _, ep := range eps {
			ep.Close()
		}
	}()
	round := 0
	for {
		eps = append(eps, ep)
		if round, err = agreeOn(ep, round); err != nil {
			return fmt.Errorf("rank %d of %v in round %d: %w", ep.Rank(), env.Ranks, round, err)
		}
		if round == len(rounds) {
			break
		}
		lost := ranksOf(rounds[round])
		awaitAgreed(ep, jobRanks(env), lost)
		if slices.Contains(lost, env.jobRank()) {
			if strings.HasPrefix(rounds[round], "agent:") {
				agent, _ := os.FindProcess(os.Getppid())
				agent.Kill()
			}
			end("killed")
		}
		for _, rank := range lost {
			if err := awaitLoss(ep, slices.Index(jobRanks(env), rank)); err != nil {
				return err
			}
		}
		members := slices.DeleteFunc(jobRanks(env), func(rank int) bool { return slices.Contains(lost, rank) })
		round++
		if ep, env, err = env.Regroup(ctx, uint64(round), members); err != nil {
			return err
		}
	}
	fmt.Printf("rank %d of %d is rank %d of the job on host %d: respawned %v\n", ep.Rank(), ep.Size(), env.jobRank(), hostOf(env), env.Respawned)
	return nil
}

func hostOf(env JobEnv) int {
	if env.Hosts == nil {
		return 0
	}
	return env.Hosts[env.Rank]
}

// ranksOf returns the ranks of a list as in 1,2; none of -.
func ranksOf(list string) (ranks []int) {
	for text := range strings.SplitSeq(strings.TrimPrefix(list, "agent:"), ",") {
		if rank, err := strconv.Atoi(text); err == nil {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// jobRanks returns the job's ranks of an endpoint.
func jobRanks(env JobEnv) []int {
	if env.Ranks != nil {
		return slices.Clone(env.Ranks)
	}
	ranks := make([]int, env.Size)
	for rank := range ranks {
		ranks[rank] = rank
	}
	return ranks
}

// agreeOn exchanges numbers between all ranks, and returns the greatest.
func agreeOn(ep transport.Endpoint, number int) (int, error) {
	step := transport.Step{Signature: transport.Signature{Context: 1 << transport.ContextBits, Call: "agree"}}
	var others []int
	var got [][]byte
	for rank := range ep.Size() {
		if rank != ep.Rank() {
			others, got = append(others, rank), append(got, make([]byte, 1))
			step.Recvs = append(step.Recvs, transport.Recv{From: rank, Into: got[len(got)-1]})
		}
	}
	if len(others) == 0 {
		return number, nil
	}
	step.Sends = []transport.Send{{To: others, Data: []byte{byte(number)}}}
	err := ep.Exchange(context.Background(), step)
	for _, b := range got {
		number = max(number, int(b[0]))
	}
	return number, err
}

// awaitAgreed returns, on ranks of the job that are about to be lost, when all have agreed. One
// that is lost already has waited for that.
func awaitAgreed(ep transport.Endpoint, ranks, lost []int) {
	ctx, agreed := context.Background(), transport.Match{Context: transport.ResilientContext(0), Tag: 2}
	for _, rank := range lost {
		if to := slices.Index(ranks, rank); to >= 0 && to != ep.Rank() {
			_ = ep.Send(ctx, to, agreed, "byte", []byte{1})
		}
	}
	if !slices.Contains(lost, ranks[ep.Rank()]) {
		return
	}
	for rank := range ranks {
		if rank != ep.Rank() {
			_, _ = ep.Recv(ctx, rank, agreed, "byte", make([]byte, 1))
		}
	}
}

// awaitLoss waits until a rank of the endpoint is lost.
func awaitLoss(ep transport.Endpoint, rank int) error {
	_, err := ep.Recv(context.Background(), rank, transport.Match{Context: transport.ResilientContext(0), Tag: 1}, "byte", make([]byte, 1))
	var peer *transport.PeerError
	if !errors.As(err, &peer) || peer.Peer != rank || !errors.Is(err, transport.ErrLost) {
		return fmt.Errorf("rank %d is to be lost, and a receive from it ends with %v", rank, err)
	}
	return nil
}

// sortedLines returns the lines that contain a text, in alphabetical order.
func sortedLines(output, text string) (lines []string) {
	for line := range strings.Lines(output) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

// runRegrouping runs a job whose ranks are lost and come again.
func runRegrouping(t *testing.T, cfg Config) *result {
	t.Helper()
	r := new(result)
	cfg.Stdout, cfg.Stderr, cfg.Unlabeled, cfg.Continue = &r.out, &r.err, true, true
	if os.Getenv("CHORALE_TEST_VERBOSE") != "" {
		cfg.Verbose = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	r.end = Run(ctx, cfg)
	return r
}

func TestRanksRegroupWithThoseThatAreStartedAnew(t *testing.T) {
	for _, test := range []struct {
		rounds  string
		respawn int
		want    []string
	}{
		{"1", 1, []string{"rank 0 of 3 is rank 0", "rank 1 of 3 is rank 1+", "rank 2 of 3 is rank 2"}},
		{"0", 1, []string{"rank 0 of 3 is rank 0+", "rank 1 of 3 is rank 1", "rank 2 of 3 is rank 2"}},
		{"1", 0, []string{"rank 0 of 2 is rank 0", "rank 1 of 2 is rank 2"}},
		{"0,1", 0, []string{"rank 0 of 1 is rank 2"}},
		{"0,1", 2, []string{"rank 0 of 3 is rank 0+", "rank 1 of 3 is rank 1+", "rank 2 of 3 is rank 2"}},
		{"-", 0, []string{"rank 0 of 3 is rank 0", "rank 1 of 3 is rank 1", "rank 2 of 3 is rank 2"}},
		{"1 1 1", 3, []string{"rank 0 of 3 is rank 0", "rank 1 of 3 is rank 1+", "rank 2 of 3 is rank 2"}},
		{"1 0,2 1", 4, []string{"rank 0 of 3 is rank 0+", "rank 1 of 3 is rank 1+", "rank 2 of 3 is rank 2+"}},
		{"0 1 -", 1, []string{"rank 0 of 2 is rank 0+", "rank 1 of 2 is rank 2"}},
	} {
		for _, transport := range []string{"auto", "shm", "tcp"} {
			t.Run(fmt.Sprintf("%s lost, %d anew, %s", test.rounds, test.respawn, transport), func(t *testing.T) {
				if transport == "shm" && runtime.GOOS != "linux" {
					t.Skip("ranks share memory on Linux only")
				}
				cfg := config(t, 3, "regroup", strings.Fields(test.rounds)...)
				cfg.Transport, cfg.Respawn = transport, test.respawn
				r := runRegrouping(t, cfg)
				var want []string
				for _, line := range test.want {
					line, anew := strings.CutSuffix(line, "+")
					want = append(want, fmt.Sprintf("%s of the job on host 0: respawned %v", line, anew))
				}
				if got := sortedLines(r.out.String(), "of the job"); r.end != nil || !slices.Equal(got, want) {
					t.Errorf("%v\n%s%s\nwant %s", r.end, r.out.String(), r.err.String(), strings.Join(want, "\n"))
				}
			})
		}
	}
}

// regroupTogether regroups all three ranks of a job, of which one ends then. The others hear of
// it at both endpoints, and regroup by the older one.
func regroupTogether([]string) error {
	ctx := context.Background()
	older, env, err := Join(ctx)
	if err != nil {
		return err
	}
	newer, _, err := env.Regroup(ctx, 1, []int{0, 1, 2})
	if err != nil {
		return err
	}
	eps := []transport.Endpoint{older, newer}
	for _, ep := range eps {
		if _, err := agreeOn(ep, 0); err != nil {
			return err
		}
	}
	awaitAgreed(newer, jobRanks(env), []int{1})
	if env.Rank == 1 {
		end("killed")
	}
	for _, ep := range eps {
		if err := awaitLoss(ep, 1); err != nil {
			return err
		}
	}
	last, env, err := env.Regroup(ctx, 1, []int{0, 2}) // the id may be that of other members
	if err != nil {
		return err
	}
	if _, err := agreeOn(last, 0); err != nil {
		return err
	}
	for _, ep := range append(eps, last) {
		ep.Close()
	}
	fmt.Println("rank", env.Ranks[last.Rank()], "of endpoint", env.Group)
	return nil
}

func TestALossIsHeardAtEachEndpointOfTheProcess(t *testing.T) {
	for _, transport := range []string{"auto", "tcp"} {
		cfg := config(t, 3, "regrouptogether")
		cfg.Transport = transport
		r := runRegrouping(t, cfg)
		if got := sortedLines(r.out.String(), "rank"); r.end != nil || !slices.Equal(got, []string{"rank 0 of endpoint 2", "rank 2 of endpoint 2"}) {
			t.Errorf("%s: %v\n%s%s", transport, r.end, &r.out, &r.err)
		}
	}
}

func TestRanksOfSeveralHostsRegroup(t *testing.T) {
	for _, test := range []struct {
		rounds  string
		respawn int
		want    []string
	}{
		{"1", 1, []string{"rank 0 of 4 is rank 0 of the job on host 0: respawned false", "rank 1 of 4 is rank 1 of the job on host 0: respawned true",
			"rank 2 of 4 is rank 2 of the job on host 1: respawned false", "rank 3 of 4 is rank 3 of the job on host 1: respawned false"}},
		{"0,1 2", 3, []string{"rank 0 of 4 is rank 0 of the job on host 0: respawned true", "rank 1 of 4 is rank 1 of the job on host 0: respawned true",
			"rank 2 of 4 is rank 2 of the job on host 1: respawned true", "rank 3 of 4 is rank 3 of the job on host 1: respawned false"}},
		{"agent:2,3", 1, []string{"rank 0 of 2 is rank 0 of the job on host 0: respawned false", "rank 1 of 2 is rank 1 of the job on host 0: respawned false"}},
		{"agent:0,1 3", 1, []string{"rank 0 of 2 is rank 2 of the job on host 0: respawned false", "rank 1 of 2 is rank 3 of the job on host 0: respawned true"}},
	} {
		for _, transport := range []string{"auto", "tcp"} {
			cfg, dir := onHosts(t, "a:2,b:2", "regroup", strings.Fields(test.rounds)...)
			cfg.Transport, cfg.Respawn = transport, test.respawn
			r := runRegrouping(t, cfg)
			if got := sortedLines(r.out.String(), "of the job"); r.end != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s, %s: %v\n%s%s", test.rounds, transport, r.end, r.out.String(), r.err.String())
			}
			await(t, "nothing is left of the job", func() bool { // the guard of an agent that was killed removes it
				left, err := filepath.Glob(filepath.Join(dir, guard.Prefix+"*"))
				return err == nil && len(left) == 0
			})
		}
	}
}
