package draw_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/sched"
)

// Rank 0 waits for a message that rank 2 does not send, and rank 1 for rank 2 to begin.
const neverEnds = `
schedule allreduce never-ends
ranks 3
rank 0
  step
    copy in 0..1 to out 0
    send in 0..1 to 1
  step
    recv out 0..1 from 2
rank 1
  step
    recv out 0..1 from 0
  step
    recv out 0..1 from 2
rank 2
  step
    recv out 0..1 from 1
  step
    send out 0..1 to 1
`

func programsPage(t *testing.T) string {
	t.Helper()
	s, err := sched.ParseText([]byte(neverEnds))
	if err != nil {
		t.Fatal(err)
	}
	faults := sched.FaultsOf(s.Check())
	if len(faults) != 2 {
		t.Fatalf("the faults are %v, want two", faults)
	}
	var b bytes.Buffer
	if err := draw.ProgramsPage(&b, "a <title>", s, faults); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePageOfAWrongScheduleListsItsFaults(t *testing.T) {
	page := programsPage(t)
	for _, want := range []string{
		"<h1>a &lt;title&gt;</h1>",
		"<li>line 9: rank 0 in step 2, peer 2: waits for a message that rank 2 never sends</li>",
		"<li>waiting for ever: rank 0 in step 2, rank 1 in step 2, rank 2 in step 1</li>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, outside := range []string{"http://", "https://", "src="} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), outside) {
			t.Errorf("the page has %s: it loads nothing", outside)
		}
	}
}

func TestThePageOfAWrongSchedulePlaysUntilNobodyCanGoOn(t *testing.T) {
	tab := newBrowser(t).openPage(t, programsPage(t), viewOptions{})
	count := func(class string) int {
		return value[int](tab, `document.querySelectorAll("rect.`+class+`").length`)
	}
	check := func(at, want string, ended, ahead int) {
		t.Helper()
		if got := value[string](tab, headline); got != want || count("ended") != ended || count("ahead") != ahead {
			t.Errorf("%s: %q, %d steps ended, %d ahead: want %q, %d and %d", at, got, count("ended"), count("ahead"), want, ended, ahead)
		}
	}
	const end = "Round 1 of 1: rank 0 has ended step 1, rank 1 has ended step 1; nobody can go on"
	check("when it is opened", end, 2, 1)
	tab.click("#first")
	check("after First", "Round 0 of 1: all begin", 0, 3)
	tab.press(kb.ArrowRight)
	check("after the right arrow", end, 2, 1)
	if n := count("fault"); n != 2 {
		t.Errorf("%d steps have a fault: want 2", n)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.problems) > 0 || !slices.Equal(tab.requests, []string{tab.url}) {
		t.Errorf("the console has %q, and the page loads %q: want itself alone", tab.problems, tab.requests)
	}
}
