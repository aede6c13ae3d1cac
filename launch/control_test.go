package launch

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chorale-go/chorale/transport"
)

var testToken = [16]byte{1, 2, 3}

func listenFor(t *testing.T, size int) *control { return listenTo(t, size, false, t.Logf) }

func listenTo(t *testing.T, size int, shared bool, report func(string, ...any)) *control {
	t.Helper()
	c, err := newControl(size, testToken, shared, report)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// A voice is a control connection in the raw.
type voice struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Scanner
}

func speakTo(t *testing.T, c *control) *voice {
	t.Helper()
	conn, err := net.Dial("tcp", c.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &voice{t, conn, bufio.NewScanner(conn)}
}

func (v *voice) say(line string) {
	v.t.Helper()
	if _, err := fmt.Fprintln(v.conn, line); err != nil {
		v.t.Fatal(err)
	}
}

// hears fails unless the next line is the one wanted; "" is the end.
func (v *voice) hears(want string) {
	v.t.Helper()
	v.in.Scan()
	if got := v.in.Text(); got != want {
		v.t.Errorf("heard %q, want %q", got, want)
	}
}

func joins(rank int) string {
	return fmt.Sprintf(`{"join":{"token":"%s","rank":%d,"address":"here:%d"}}`, hex.EncodeToString(testToken[:]), rank, rank)
}

func (v *voice) joins(rank int) *voice {
	v.t.Helper()
	v.say(joins(rank))
	v.hears(`{"joined":true}`)
	return v
}

func TestAQuestionIsAnsweredWhenTheRankHasJoined(t *testing.T) {
	c := listenFor(t, 3)
	zero, one := speakTo(t, c).joins(0), speakTo(t, c).joins(1)
	zero.say(`{"where":2}`)
	one.say(`{"where":2}`)
	zero.say(`{"where":1}`)
	zero.hears(`{"at":{"rank":1,"address":"here:1"}}`) // so the question before it has been heard too
	two := speakTo(t, c).joins(2)
	zero.hears(`{"at":{"rank":2,"address":"here:2"}}`)
	one.hears(`{"at":{"rank":2,"address":"here:2"}}`)
	two.say(`{"where":0}`)
	two.hears(`{"at":{"rank":0,"address":"here:0"}}`)
}

func TestRanksAreToldOfOneThatIsLost(t *testing.T) {
	c := listenFor(t, 3)
	zero, one := speakTo(t, c).joins(0), speakTo(t, c).joins(1)
	c.end(1, "killed", false)
	zero.hears(`{"lost":{"rank":1,"reason":"killed"}}`)
	zero.say(`{"where":1}`)
	zero.hears(`{"lost":{"rank":1,"reason":"killed"}}`)
	zero.say(`{"where":2}`)
	c.end(2, "exited with status 0", true)
	zero.hears(`{"lost":{"rank":2,"reason":"exited with status 0 without joining the job"}}`)
	c.close()
	one.hears("")
}

func TestRanksAreNotToldOfOneThatEndsWellUntilTheyAsk(t *testing.T) {
	c := listenFor(t, 3)
	zero, one, two := speakTo(t, c).joins(0), speakTo(t, c).joins(1), speakTo(t, c).joins(2)
	one.say(`{"leaves":true}`)
	one.hears(`{"left":1}`)
	c.end(1, "exited with status 0", true)
	c.end(2, "exited with status 0", true)
	zero.say(`{"where":1}`)
	zero.hears(`{"left":1}`)
	zero.say(`{"where":2}`)
	zero.hears(`{"lost":{"rank":2,"reason":"exited with status 0"}}`)
	c.close()
	two.hears("")
}

func TestBlameIsKnownWhenTheRankHasEnded(t *testing.T) {
	c := listenFor(t, 3)
	zero := speakTo(t, c).joins(0)
	speakTo(t, c).joins(1)
	zero.say(`{"blames":1}`)
	zero.conn.Close()
	if got := c.blame(0); got != 1 {
		t.Errorf("rank 0 blames %d, want 1", got)
	}
	if got := c.blame(2); got != -1 {
		t.Errorf("rank 2, which never joined, blames %d, want -1", got)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	c := listenFor(t, 2)
	speakTo(t, c).joins(0)
	for _, test := range []struct{ name, says, hears string }{
		{"another job's rank", `{"join":{"token":"00","rank":1,"address":"x"}}`, `{"refused":"the token is not that of this job"}`},
		{"a rank of a larger job", joins(2), `{"refused":"no rank 2: the job has ranks 0 to 1"}`},
		{"a rank below all", joins(-1), `{"refused":"no rank -1: the job has ranks 0 to 1"}`},
		{"a second rank 0", joins(0), `{"refused":"rank 0 has joined already"}`},
		{"a question first", `{"where":0}`, ""},
		{"something else", "GET / HTTP/1.1", ""},
		{"a line without an end", strings.Repeat("x", 2*longest), ""},
	} {
		v := speakTo(t, c)
		v.t = t
		t.Log(test.name)
		v.say(test.says)
		v.hears(test.hears)
	}
	speakTo(t, c).joins(1)
}

func TestARankIsToldWhyItMayNotJoin(t *testing.T) {
	c := listenFor(t, 1)
	place := Place{Launched: true, Transport: "tcp", Rank: 0, Size: 1, Control: c.address(), Token: testToken}
	first, err := dial(t.Context(), place, joinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	_, err = dial(t.Context(), place, joinMessage{Address: "here"})
	if want := "rank 0 does not join its job: rank 0 has joined already"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c.close()
	if _, err = dial(t.Context(), place, joinMessage{Address: "here"}); err == nil {
		t.Error("joined without a launcher")
	}
}

func TestALookupEndsWithItsContextOrItsAnswer(t *testing.T) {
	c := listenFor(t, 2)
	place := Place{Launched: true, Transport: "tcp", Rank: 0, Size: 2, Control: c.address(), Token: testToken}
	client, err := dial(t.Context(), place, joinMessage{Address: "here"})
	if err != nil {
		t.Fatal(err)
	}
	listens := make(chan bool)
	go func() { listens <- client.listen(func(int, string) {}) }()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.lookup(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	c.end(1, "killed", false)
	if _, err := client.lookup(t.Context(), 1); !errors.Is(err, transport.ErrLost) {
		t.Errorf("%v, want %v", err, transport.ErrLost)
	}
	client.close()
	if !<-listens {
		t.Error("the end is taken for the launcher's")
	}
}

// A rank that ignores everything ends all the same.
func TestARankEndsWithItsLauncher(t *testing.T) {
	c := listenFor(t, 1)
	place := Place{Transport: "tcp", Rank: 0, Size: 1, Control: c.address(), Token: testToken}
	cmd := exec.Command(os.Args[0], "stay")
	cmd.Env = append(os.Environ(), place.environ()...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for joined := false; !joined; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		joined = c.members[0].conn != nil
		c.mu.Unlock()
	}
	c.close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit status %d, want 1", got)
	}
	if want := "chorale: rank 0: the launcher is gone, so this rank ends\n"; stderr.String() != want {
		t.Errorf("it says %q, want %q", stderr.String(), want)
	}
}

func TestARankThatSharesNoMemoryMayNotJoinThoseThatDo(t *testing.T) {
	c := listenTo(t, 3, true, t.Logf)
	place := Place{Launched: true, Transport: "shm", Size: 3, Control: c.address(), Token: testToken}
	first, err := dial(t.Context(), place, joinMessage{Memory: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	place.Rank = 2
	_, err = dial(t.Context(), place, joinMessage{Memory: "there"})
	if want := "rank 2 does not join its job: it does not share memory with rank 0: want --transport auto or tcp for ranks on several hosts"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestTheLauncherReportsWhatMemoryRanksDoWithout(t *testing.T) {
	reports := make(chan string, 2)
	c := listenTo(t, 2, false, func(format string, args ...any) { reports <- fmt.Sprintf(format, args...) })
	place := Place{Launched: true, Transport: "shm", Mixes: true, Size: 2, Control: c.address(), Token: testToken}
	first, err := dial(t.Context(), place, joinMessage{Without: "it has none"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	if got, want := <-reports, "rank 0 shares no memory, and is reached over TCP: it has none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := first.say(message{Denied: true}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-reports, "rank 0 may not read the memory of other ranks: long messages were copied twice"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAutoDoesWithoutSharedMemoryAndShmDoesNot(t *testing.T) {
	for _, test := range []struct {
		place Place
		want  string // the transport, or an error
	}{
		{Place{Transport: "auto", Size: 100_000}, "tcp"},
		{Place{Transport: "auto", Size: 1}, "tcp"},
		{Place{Transport: "tcp", Size: 2}, "tcp"},
		{Place{Transport: "shm", Size: 100_000}, "no shared memory: shm: 100000 ranks: want 1 to 1024: --transport auto or tcp does without"},
	} {
		j := &job{}
		place := test.place
		got := "tcp"
		if err := j.share(&place); err != nil {
			got = err.Error()
		} else if place.Transport != "tcp" || place.Mixes || place.Memory != 0 || j.memory != nil {
			got = fmt.Sprintf("%+v", place)
		}
		if got != test.want {
			t.Errorf("%+v: got %s, want %s", test.place, got, test.want)
		}
	}
}
