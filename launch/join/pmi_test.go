package join

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Recorded conversations: a line with > is the client's, the others are the server's
// answers. The first three words of a value are count, length and checksum.
const (
	hydra402 = `> cmd=init pmi_version=1 pmi_subversion=1
cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
> cmd=get_maxes
cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
> cmd=get_my_kvsname
cmd=my_kvsname kvsname=kvs_11700_0_837089477_vm
> cmd=barrier_in
cmd=barrier_out
> cmd=get kvsname=kvs_11700_0_837089477_vm key=chorale-0-0
cmd=get_result rc=0 msg=success value=VALUE
> cmd=finalize
cmd=finalize_ack
`
	hydra501 = `> cmd=init pmi_version=1 pmi_subversion=1
cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2
> cmd=get_maxes
cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024
> cmd=get_my_kvsname
cmd=my_kvsname rc=0 kvsname=kvs_1_0
> cmd=barrier_in
cmd=barrier_out tag=0
> cmd=get kvsname=kvs_1_0 key=chorale-0-0
cmd=get_result rc=0 value=VALUE
> cmd=finalize
cmd=finalize_ack rc=0
`
	slurmPMI2 = `> cmd=init pmi_version=1 pmi_subversion=1
cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1
> cmd=get_maxes
cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024
> cmd=get_my_kvsname
cmd=my_kvsname rc=0 kvsname=4.0
> cmd=barrier_in
cmd=barrier_out rc=0
> cmd=get kvsname=4.0 key=chorale-0-0
cmd=get_result rc=0 value=VALUE
> cmd=finalize
cmd=finalize_ack rc=0
`
	// Hydra under mpiexec -pmi-port.
	initack = `> cmd=initack pmiid=1
cmd=initack rc=0
cmd=set size=3
cmd=set rank=1
cmd=set debug=0
`
)

const someValue = "127.0.0.1:40000"

// transcript fills a recorded conversation with someValue.
func transcript(text string) string {
	return strings.ReplaceAll(text, "VALUE", splitValue(someValue, maxPMIValue)[0])
}

// replay is a server that answers the requests of a transcript, after at most limit
// bytes hangs up, and reports a request that is not as recorded.
func replay(conn net.Conn, text string, limit int) (report <-chan error) {
	done := make(chan error, 1)
	go func() {
		defer conn.Close()
		r := bufio.NewReader(conn)
		for line := range strings.Lines(text) {
			if want, ok := strings.CutPrefix(line, "> "); ok {
				if got, err := r.ReadString('\n'); got != want {
					done <- fmt.Errorf("request %q, %v, want %q", got, err, want)
					return
				}
				continue
			}
			if len(line) > limit {
				io.WriteString(conn, line[:limit])
				done <- nil
				return
			}
			limit -= len(line)
			io.WriteString(conn, line)
		}
		done <- nil
	}()
	return done
}

const noLimit = 1 << 30

// connectTo connects rank 1 of 3 to the other end of a PMI-1 connection.
func connectTo(ctx context.Context, conn net.Conn, initack string) (*Session, *Place, error) {
	p := &Place{Reason: "PMI_FD=5", Rank: 1, Size: 3}
	if initack != "" {
		p.Rank, p.Size = unknown, unknown
	}
	p.connect = func(ctx context.Context, p *Place) (store, error) { return connectPMI(ctx, p, conn, initack) }
	session, err := p.Connect(ctx)
	return session, p, err
}

// visit is what a rank does in a session: it shares a value and leaves.
func visit(ctx context.Context, conn net.Conn, initack string) (value string, p *Place, err error) {
	session, p, err := connectTo(ctx, conn, initack)
	if err != nil {
		conn.Close()
		return "", p, err
	}
	value, err = session.Share(ctx, "")
	return value, p, errors.Join(err, session.Finalize(ctx))
}

func TestTheRecordedServersAreUnderstood(t *testing.T) {
	for _, test := range []struct{ text, initack, job string }{
		{hydra402, "", "kvs_11700_0_837089477_vm"},
		{hydra501, "", "kvs_1_0"},
		{slurmPMI2, "", "4.0"},
		{initack + hydra402, "cmd=initack pmiid=1\n", "kvs_11700_0_837089477_vm"},
		{initack + hydra501, "cmd=initack pmiid=1\n", "kvs_1_0"},
	} {
		client, server := net.Pipe()
		report := replay(server, transcript(test.text), noLimit)
		value, p, err := visit(t.Context(), client, test.initack)
		if value != someValue || err != nil || p.Rank != 1 || p.Size != 3 || p.Job != test.job {
			t.Errorf("%s: %q, %v, %+v", test.job, value, err, p)
		}
		if err := <-report; err != nil {
			t.Errorf("%s: %v", test.job, err)
		}
	}
}

// Wherever the server closes the connection, its client says so.
func TestAServerThatClosesInTheMiddleIsAnError(t *testing.T) {
	text := transcript(initack + hydra402)
	whole := len(text) - strings.Count(text, "> ")*2
	for line := range strings.Lines(text) {
		if request, ok := strings.CutPrefix(line, "> "); ok {
			whole -= len(request)
		}
	}
	for cut := range whole {
		client, server := net.Pipe()
		report := replay(server, text, cut)
		_, _, err := visit(t.Context(), client, "cmd=initack pmiid=1\n")
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("after %d bytes: %v", cut, err)
		}
		<-report // the client may have given up before
	}
}

func TestAnswersThatCannotBeAreErrors(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"pmi_version=1 pmi_subversion=1 rc=0", "pmi_version=1 pmi_subversion=1 rc=-1 msg=mismatch", `init: the launcher refuses: rc="-1" msg="mismatch"`},
		{"pmi_version=1 pmi_subversion=1 rc=0", "pmi_version=3 pmi_subversion=1 rc=0", `version "3" of PMI: want 1`},
		{"cmd=response_to_init", "cmd=hello", `init: the launcher answers cmd="hello": want cmd=response_to_init`},
		{"cmd=response_to_init", "cmd=response_to_init cmd=x", `two values for "cmd"`},
		{"cmd=response_to_init", strings.Repeat("x", 10000), "more than 8192 bytes"},
		{"keylen_max=64", "keylen_max=4", `keylen_max="4": want 32 or more`},
		{"keylen_max=64", "", `keylen_max=""`},
		{"vallen_max=1024", "vallen_max=-1", `vallen_max="-1": want more than 64`},
		{"vallen_max=1024", "vallen_max=99999999999999999999", `vallen_max="99999999999999999999": want`},
		{"kvsname=kvs_11700_0_837089477_vm\n", "kvsname=\n", "store has 0 bytes"},
		{"kvsname=kvs_11700_0_837089477_vm\n", "kvsname=" + strings.Repeat("k", 257) + "\n", "store has 257 bytes"},
		{"cmd=barrier_out", "cmd=barrier_out rc=1", "barrier_in: the launcher refuses"},
		{"rc=0 msg=success value=", "rc=-1 msg=key_not_found value=", "no key chorale-0-0: rank 0 has not put it"},
		{"value=VALUE", "value=unknown", "which do not start as rank 0's value does"},
		{"value=VALUE", "", "which do not start as rank 0's value does"},
		{"VALUE", splitValue(someValue, maxPMIValue)[0][:30], "bytes of the 20 that rank 0 has written: its store cuts values"},
		{"cmd=finalize_ack", "cmd=finalize_ack rc=1", "finalize: the launcher refuses"},
		{"size=3", "size=0", "the job has 0 ranks: want a number from 1"},
		{"size=3", "size=2000000", "the job has 2000000 ranks"},
		{"size=3", "size=x", `rank "1" of "x": want numbers`},
		{"rank=1", "rank=3", "rank 3 of 3: want a rank below the size"},
		{"rank=1", "rank=-1", "rank -1 of 3"},
		{"cmd=set rank=1", "cmd=get rank=1", `answers cmd="get"`},
		{"cmd=initack rc=0", "cmd=initack rc=1", `rc="1"`},
	} {
		text := initack + hydra402
		bad := strings.Replace(text, test.from, test.to, 1)
		if bad == text {
			t.Fatalf("no %s", test.from)
		}
		client, server := net.Pipe()
		report := replay(server, transcript(bad), noLimit)
		_, _, err := visit(t.Context(), client, "cmd=initack pmiid=1\n")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %v, want %s", test.to, err, test.want)
		}
		<-report
	}
}

// A silentServer reads, and never answers after the first n answers.
func silentServer(conn net.Conn, text string, answers int) {
	r := bufio.NewReader(conn)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "> ") {
			r.ReadString('\n')
		} else if answers--; answers >= 0 {
			io.WriteString(conn, line)
		} else {
			break
		}
	}
	io.Copy(io.Discard, r)
	conn.Close()
}

func TestASilentServerIsNotWaitedForLongerThanAMinute(t *testing.T) {
	for answers, what := range []string{"init", "get_maxes", "get_my_kvsname"} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			go silentServer(server, transcript(hydra402), answers)
			start := time.Now()
			_, _, err := visit(t.Context(), client, "")
			if want := what + ": the launcher has not answered: 1m0s have passed"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if waited := time.Since(start); waited != answerLimit {
				t.Errorf("%s: waited %v", what, waited)
			}
		})
	}
}

// The first byte of an answer is no answer.
func TestHalfAnAnswerIsNotWaitedForLongerThanAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go silentServer(server, "> cmd=init pmi_version=1 pmi_subversion=1\ncmd=response_to", 1)
		start := time.Now()
		_, _, err := visit(t.Context(), client, "")
		if err == nil || !strings.Contains(err.Error(), "init: the launcher has not answered: 1m0s have passed") || time.Since(start) != answerLimit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestTheOtherRanksAreWaitedForUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go silentServer(server, transcript(hydra402), 3)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errors.New("rank 2 does not come"))
		defer cancel()
		start := time.Now()
		_, _, err := visit(ctx, client, "")
		if err == nil || !strings.Contains(err.Error(), "PMI_FD=5: barrier_in: the launcher has not answered: rank 2 does not come") {
			t.Error(err)
		}
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestTheEndOfTheLauncherIsNoticed(t *testing.T) {
	client, server := net.Pipe()
	report := replay(server, transcript(hydra402[:strings.Index(hydra402, "> cmd=finalize")]), noLimit)
	session, _, err := connectTo(t.Context(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	defer session.store.close()
	if _, err := session.Share(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := <-report; err != nil {
		t.Fatal(err)
	}
	<-session.Gone()
	if _, err := session.Share(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Share after the end: %v", err)
	}
}

func TestLeavingIsNoLossOfTheLauncher(t *testing.T) {
	client, server := net.Pipe()
	report := replay(server, transcript(hydra402), noLimit)
	session, _, err := connectTo(t.Context(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Share(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := session.Finalize(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-report
	select {
	case <-session.Gone():
		t.Error("the launcher is gone")
	default:
	}
	if err := session.Finalize(t.Context()); !errors.Is(err, errOver) {
		t.Errorf("the second Finalize: %v", err)
	}
}

func TestAbortTellsTheLauncherStatusAndReason(t *testing.T) {
	client, server := net.Pipe()
	report := replay(server, transcript(hydra402[:strings.Index(hydra402, "> cmd=barrier_in")])+"> cmd=abort exitcode=5 message=the_disk_is_full__\n", noLimit)
	session, _, err := connectTo(t.Context(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	defer session.store.close()
	if err := session.Abort(5, "the disk is full;\n"); err != nil {
		t.Error(err)
	}
	if err := <-report; err != nil {
		t.Error(err)
	}
}

func TestAbortDoesNotWaitForLongForALauncherThatDoesNotAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		go silentServer(server, transcript(hydra402), 3)
		session, _, err := connectTo(t.Context(), client, "")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := session.Abort(5, ""); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited != abortWait {
			t.Errorf("waited %v", waited)
		}
		session.store.close()
	})
}

// FuzzPMI has the launcher's server say anything. The rank gets a place that can be, or
// an error.
func FuzzPMI(f *testing.F) {
	for _, text := range []string{initack + hydra402, initack + hydra501, initack + slurmPMI2, hydra402} {
		var answers strings.Builder
		for line := range strings.Lines(transcript(text)) {
			if !strings.HasPrefix(line, ">") {
				answers.WriteString(line)
			}
		}
		f.Add([]byte(answers.String()))
	}
	f.Fuzz(func(t *testing.T, says []byte) {
		client, server := net.Pipe()
		go io.Copy(io.Discard, server)
		go func() {
			server.Write(says)
			server.Close()
		}()
		value, p, err := visit(t.Context(), client, "cmd=initack pmiid=1\n")
		if err == nil && (p.Rank < 0 || p.Rank >= p.Size || p.Size > maxRanks || len(value) > maxShared) {
			t.Errorf("%q: %+v, %d bytes", says, p, len(value))
		}
	})
}
