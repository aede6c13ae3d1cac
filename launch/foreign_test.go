package launch

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/launch/join"
)

// A byHand is ranks that a user starts one by one, each with variables of its own.
type byHand struct {
	t     *testing.T
	dir   string // for the secret
	ranks []*handRank
}

type handRank struct {
	cmd      *exec.Cmd
	out, err lockedBuilder
}

// startByHand starts a program of this package as the ranks of a job that no launcher has
// started. Env returns the variables of a rank beside its place.
func startByHand(t *testing.T, size int, env func(rank int) []string, args ...string) *byHand {
	t.Helper()
	return startByHandWith(t, size, nil, env, args...)
}

// startByHandWith does so with a standard input for all ranks.
func startByHandWith(t *testing.T, size int, input *os.File, env func(rank int) []string, args ...string) *byHand {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &byHand{t: t, dir: t.TempDir()}
	rendezvous := testenv.FreeAddress(t, "127.0.0.1")
	for rank := range size {
		r := &handRank{cmd: exec.Command(self, args...)}
		if input != nil {
			r.cmd.Stdin = input
		}
		r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
		r.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+b.dir, "CHORALE_RENDEZVOUS="+rendezvous,
			fmt.Sprintf("CHORALE_RANK=%d", rank), fmt.Sprintf("CHORALE_SIZE=%d", size))
		if env != nil {
			r.cmd.Env = append(r.cmd.Env, env(rank)...)
		}
		if err := r.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
		b.ranks = append(b.ranks, r)
	}
	return b
}

// await waits until each of these ranks has printed a text.
func (b *byHand) await(text string, ranks ...*handRank) {
	b.t.Helper()
	for _, r := range ranks {
		await(b.t, "a rank prints "+text, func() bool { return strings.Contains(r.out.String(), text) })
	}
}

// wait returns the exit status of each rank, -1 where a signal ended it.
func (b *byHand) wait() (statuses []int) {
	b.t.Helper()
	watchdog := time.AfterFunc(time.Minute, func() {
		for _, r := range b.ranks {
			r.cmd.Process.Kill()
		}
	})
	defer watchdog.Stop()
	for _, r := range b.ranks {
		r.cmd.Wait() // the state has it
		statuses = append(statuses, r.cmd.ProcessState.ExitCode())
	}
	if !watchdog.Stop() {
		b.t.Errorf("the job hangs:\n%s", b)
	}
	return statuses
}

func (b *byHand) String() string {
	var s strings.Builder
	for rank, r := range b.ranks {
		fmt.Fprintf(&s, "rank %d: %s%s\n", rank, &r.out, &r.err)
	}
	return s.String()
}

func setAll(vars ...string) func(int) []string { return func(int) []string { return vars } }

func TestRanksThatAUserStartsFindEachOther(t *testing.T) {
	for _, size := range []int{1, 2, 7} {
		for _, transport := range []string{"auto", "tcp", "shm"} {
			b := startByHand(t, size, setAll("CHORALE_TRANSPORT="+transport), "ring", "5")
			if statuses := b.wait(); slices.Max(statuses) != 0 || slices.Min(statuses) != 0 {
				t.Errorf("%d ranks over %s end with %v:\n%s", size, transport, statuses, b)
			}
			if n := strings.Count(b.String(), "token 5\n"); n != size {
				t.Errorf("%d ranks over %s: %d have the token:\n%s", size, transport, n, b)
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, "chorale", "*")); left != nil {
				t.Errorf("%d ranks over %s leave %v", size, transport, left)
			}
		}
	}
}

func (b *byHand) reports() (all []Report) {
	b.t.Helper()
	if statuses := b.wait(); slices.Max(statuses) != 0 {
		b.t.Fatalf("%v:\n%s", statuses, b)
	}
	for _, r := range b.ranks {
		var report Report
		if err := json.Unmarshal([]byte(r.out.String()), &report); err != nil {
			b.t.Fatalf("%v:\n%s", err, b)
		}
		all = append(all, report)
	}
	return all
}

func TestRanksOfAHostFindTheMemoryThatTheyShare(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks share memory on Linux alone")
	}
	hosts := []string{"a", "a", "b", "a", "b"}
	b := startByHand(t, 5, func(rank int) []string { return []string{"CHORALE_HOST=" + hosts[rank]} }, "describe")
	for rank, r := range b.reports() {
		var want []int
		for other := range hosts {
			if other != rank && hosts[other] == hosts[rank] {
				want = append(want, other)
			}
		}
		if diff := cmp.Diff(want, r.SharesMemory); diff != "" || r.Hosts != 2 || r.Launcher != join.ByHand {
			t.Errorf("rank %d of %d hosts, launched %s (-want +got):\n%s", rank, r.Hosts, r.Launcher, diff)
		}
	}
}

func TestRanksMeetAtEveryLoopbackAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "::1", "localhost"} {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			t.Logf("not here: %v", err)
			continue
		}
		l.Close()
		_, port, _ := net.SplitHostPort(testenv.FreeAddress(t, address)) // it has one
		b := startByHand(t, 2, setAll("CHORALE_RENDEZVOUS="+net.JoinHostPort(address, port)), "ring", "1")
		if statuses := b.wait(); slices.Max(statuses) != 0 {
			t.Errorf("%s: %v\n%s", address, statuses, b)
		}
	}
}

// The memory of a job is not that of another one, though both begin at the same time.
func TestJobsDoNotShareMemory(t *testing.T) {
	jobs := []*byHand{startByHand(t, 3, nil, "describe"), startByHand(t, 3, nil, "describe")}
	for _, b := range jobs {
		for rank, r := range b.reports() {
			if len(r.SharesMemory) != 2 && r.FallbackReason == "" {
				t.Errorf("rank %d shares memory with %v", rank, r.SharesMemory)
			}
		}
	}
}

func TestALostRankEndsAJobThatAUserHasStarted(t *testing.T) {
	for _, test := range []struct {
		rank, how, want string
	}{
		{"2", "killed", "rank 2"},
		{"2", "7", "rank 2"},
		{"0", "killed", "rank 0"},
	} {
		b := startByHand(t, 4, nil, "ring", "1000", test.rank, test.how)
		statuses := b.wait()
		for rank, status := range statuses {
			if fmt.Sprint(rank) != test.rank && (status != 1 || !strings.Contains(b.ranks[rank].err.String(), test.want)) {
				t.Errorf("rank %s %s: rank %d ends with status %d and says %q", test.rank, test.how, rank, status, &b.ranks[rank].err)
			}
		}
	}
}

// Nobody but the ranks themselves ends a job that a user has started. A rank that makes no
// call would not notice.
func TestRanksThatComputeEndWithARank(t *testing.T) {
	for _, test := range []struct{ rank, how, want string }{
		{"2", "killed", "rank 2 is lost: its connection to rank 0 ended, so this rank ends"},
		{"2", "7", "rank 2 is lost: its connection to rank 0 ended, so this rank ends"},
		{"2", "error", "the disk is full, so this rank ends"},
		{"0", "killed", "rank 0 is gone, so this rank ends"},
		{"0", "7", "rank 0 is gone, so this rank ends"},
		{"0", "error", "the disk is full, so this rank ends"},
	} {
		t.Run("rank "+test.rank+" "+test.how, func(t *testing.T) {
			t.Parallel()
			input, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			defer w.Close()
			b := startByHandWith(t, 3, input, nil, "compute", test.rank, test.how)
			b.await("joined", b.ranks...)
			w.Close()
			statuses := b.wait()
			for rank, status := range statuses {
				if fmt.Sprint(rank) != test.rank && (status != 1 || !strings.Contains(b.ranks[rank].err.String(), test.want)) {
					t.Errorf("rank %d ends with status %d, want 1, and says %q, want %q", rank, status, &b.ranks[rank].err, test.want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, "chorale", "*")); left != nil {
				t.Errorf("the job leaves %v", left)
			}
		})
	}
}

// Rank 0 serves the control connections until the last rank has left.
func TestRankZeroWaitsForTheRanksThatGoOn(t *testing.T) {
	input, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	b := startByHandWith(t, 3, input, nil, "leave0")
	b.await("leaves", b.ranks[0])
	time.Sleep(100 * time.Millisecond) // for a rank 0 that does not wait
	w.Close()
	if statuses := b.wait(); slices.Max(statuses) != 0 || slices.Min(statuses) != 0 {
		t.Errorf("%v:\n%s", statuses, b)
	}
}

// Whoever is killed later leaves no secret behind, which the next job would have.
func TestTheSecretIsInAFileUntilAllRanksHaveJoined(t *testing.T) {
	input, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	defer w.Close()
	b := startByHandWith(t, 3, input, nil, "leave0")
	b.await("leaves", b.ranks[0])
	if left, err := filepath.Glob(filepath.Join(b.dir, "chorale", "*")); left != nil || err != nil {
		t.Errorf("while the ranks go on, there is %v, %v", left, err)
	}
}

func TestAJobWithoutASecretIsRefusedWhereOthersReachIt(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, []byte(strings.Repeat("x", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	const rendezvous = "CHORALE_RENDEZVOUS=node1.invalid:4711"
	for _, test := range []struct {
		vars []string
		want string
	}{
		{[]string{rendezvous}, "the ranks of this job have no secret: set CHORALE_TOKEN or CHORALE_TOKEN_FILE"},
		{[]string{rendezvous, "CHORALE_TOKEN=short"}, "CHORALE_TOKEN: the token has 5 bytes: want 16 or more"},
		{[]string{rendezvous, "CHORALE_TOKEN_FILE=" + open}, "every user can read " + open},
		{[]string{rendezvous, "CHORALE_TOKEN_FILE=" + dir}, dir + " is not a file of 4096 bytes at most"},
		{[]string{rendezvous, "CHORALE_TOKEN=" + strings.Repeat("x", 40), "CHORALE_TOKEN_FILE=" + open}, "are both set"},
		{[]string{"CHORALE_INSECURE=yes"}, "CHORALE_INSECURE=yes: want 1, or the variable unset"},
		{[]string{"CHORALE_TRANSPORT=inproc"}, "are goroutines"},
		{[]string{"CHORALE_TRANSPORT=pigeon"}, "CHORALE_TRANSPORT=pigeon: want auto, shm or tcp"},
	} {
		b := startByHand(t, 1, func(int) []string { return append([]string{"CHORALE_SIZE=2"}, test.vars...) }, "ring", "1")
		if statuses := b.wait(); statuses[0] != 1 || !strings.Contains(b.ranks[0].err.String(), test.want) {
			t.Errorf("%v: status %v, %q, want %q", test.vars, statuses, &b.ranks[0].err, test.want)
		}
	}
}

// A program may print what it knows of its job, and a user what chorale env says.
func TestNobodyPrintsTheToken(t *testing.T) {
	token := rand.Text()
	vars := map[string]string{"CHORALE_RANK": "1", "CHORALE_SIZE": "2", "CHORALE_RENDEZVOUS": "node7:4711", "CHORALE_TOKEN": token}
	env, err := parseJobEnv(func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	env.Secret = proof.SecretOf(token, env.Foreign.Place.Job)
	data, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Trim(fmt.Sprint(env.Secret[:4]), "[]")
	for what, text := range map[string]string{
		"%v": fmt.Sprintf("%v %v %v", env, env.Foreign, *env.Foreign), "%+v": fmt.Sprintf("%+v %+v", env, *env.Foreign),
		"%#v": fmt.Sprintf("%#v %#v", env, *env.Foreign), "%x": fmt.Sprintf("%x", *env.Foreign), "JSON": string(data),
	} {
		if strings.Contains(text, token) || strings.Contains(text, fmt.Sprintf("%x", token)) || strings.Contains(text, secret) ||
			strings.Contains(text, strings.ReplaceAll(secret, " ", ",")) {
			t.Errorf("%s prints %s", what, text)
		}
	}
	b := startByHand(t, 2, setAll("CHORALE_TOKEN="+token), "describe")
	if statuses := b.wait(); slices.Max(statuses) != 0 || strings.Contains(b.String(), token) || !strings.Contains(b.String(), "CHORALE_TOKEN") {
		t.Errorf("%v: chorale env prints\n%s", statuses, b)
	}
}

func TestRanksWithDifferentTokensAreNotInOneJob(t *testing.T) {
	b := startByHand(t, 2, func(rank int) []string {
		return []string{"CHORALE_TOKEN=" + strings.Repeat(fmt.Sprint(rank), 32)}
	}, "ring", "1")
	b.ranks[1].cmd.Wait()
	if err := b.ranks[1].err.String(); !strings.Contains(err, "belongs to another job") {
		t.Errorf("rank 1 says %q", err)
	}
	b.ranks[0].cmd.Process.Kill() // it waits for rank 1
}

// FuzzInvitation has a launcher's key store return anything to a rank, with a token of its
// own and without. A token is never replaced, and no error quotes a secret.
func FuzzInvitation(f *testing.F) {
	secret := testSecret.Reveal()
	for _, inv := range []invitation{
		{invitationVersion, "10.1.2.3:4711,[fd00::1]:4711", secret},
		{invitationVersion, "10.1.2.3:4711", ""},
		{invitationVersion, "127.0.0.1:4711", secret[:10]},
		{invitationVersion + 1, "", secret},
	} {
		text, err := json.Marshal(inv)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`{"version":1,"secret":"` + secret + `","secret":""}`)
	f.Add(`{"version":1,"secret":"` + secret)
	f.Add(`{"version":"` + secret + `"}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range []bool{false, true} {
			inv, s, err := parseInvitation(text, token)
			switch {
			case err != nil:
				if len(text) > 40 && strings.Contains(err.Error(), secret[:8]) {
					t.Errorf("%q: the error quotes it: %v", text, err)
				}
			case token != (inv.Secret == "") || token != (s == proof.Secret{}) && s.Reveal() != strings.ToLower(inv.Secret):
				t.Errorf("%q is taken with a token: %v, for %+v", text, token, inv)
			default:
				addresses, err := JobEnv{Rank: 1, Control: inv.Control}.controlAddresses()
				if err == nil && (len(addresses) == 0 || len(inv.Control) > network.TextMax) {
					t.Errorf("%q has the addresses %q", text, addresses)
				}
			}
		}
	})
}
