package draw_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/model"
	"github.com/chorale-go/chorale/sched"
)

// Expressions evaluated in the page.
const (
	clock    = `document.getElementById("clock").textContent`
	headline = `document.getElementById("headline").textContent`
	position = `Number(document.getElementById("scrub").value)`
	atEnd    = `document.getElementById("scrub").value === document.getElementById("scrub").max`
	playing  = `document.getElementById("play").textContent === "Pause"`
	rows     = `Array.from(document.querySelectorAll("#steps tr[aria-current=step]"), (tr) => tr.cells[0].textContent).join()`
)

// at fails unless all parts of the page show the step.
func (b *tab) at(step int) {
	b.t.Helper()
	if got := value[string](b, headline); !strings.Contains(got, fmt.Sprintf("tep %d of ", step)) {
		b.t.Errorf("the page says %q, want step %d", got, step)
	}
	if got := value[string](b, rows); got != fmt.Sprint(step) {
		b.t.Errorf("the marked rows of the table are %q, want %d", got, step)
	}
	if got := value[string](b, `Array.from(document.querySelectorAll("#figure .frame.current > g"), (g) => g.id).join()`); got != fmt.Sprintf("step-%d", step) && !(got == "step-end" && value[bool](b, atEnd)) {
		b.t.Errorf("the figure shows %q, want step %d", got, step)
	}
}

func TestAPageInABrowser(t *testing.T) {
	b := newBrowser(t)
	scene := nearestFirst(t)
	for _, c := range []struct {
		claim  string
		reader viewOptions
		check  func(*tab)
	}{
		{"it plays to the last step", viewOptions{}, playsToTheEnd},
		{"it stays where it is paused", viewOptions{}, staysWhilePaused},
		{"the scrubber moves it", viewOptions{}, scrubs},
		{"buttons and rows move it", viewOptions{}, clicks},
		{"keys move it", viewOptions{}, handlesKeys},
		{"keys of a control keep their meaning", viewOptions{}, leavesKeys},
		{"the congested link is red", viewOptions{}, showsCongestion},
		{"messages move along their routes", viewOptions{}, movesMessages},
		{"by the clock of steps, steps last equally long", viewOptions{}, countsSteps},
		{"with reduced motion it shows whole steps", viewOptions{preferences: map[string]string{"prefers-reduced-motion": "reduce"}}, standsStill},
		{"it follows the dark color scheme", viewOptions{preferences: map[string]string{"prefers-color-scheme": "dark"}}, isDark},
		{"it fits a phone", viewOptions{width: 360}, fits},
		{"it is readable without scripts", viewOptions{noScript: true}, standsWithoutScripts},
	} {
		t.Run(c.claim, func(t *testing.T) {
			tab := b.open(t, scene, c.reader)
			c.check(tab)
			tab.mu.Lock()
			defer tab.mu.Unlock()
			if len(tab.problems) > 0 {
				t.Errorf("the console has %q", tab.problems)
			}
			if !slices.Equal(tab.requests, []string{tab.url}) {
				t.Errorf("the page loads %q, want itself alone", tab.requests)
			}
		})
	}
	for name, s := range map[string]draw.Scene{
		"one rank that copies":   simulate(t, sched.Bcast, "binomial", "ring", 1, 5, model.Default()),
		"one rank with no steps": simulate(t, sched.Barrier, "dissemination", "full", 1, 0, model.Default()),
	} {
		t.Run("a schedule without messages stands still: "+name, func(t *testing.T) {
			tab := b.open(t, s, viewOptions{})
			tab.press(kb.End)
			tab.mu.Lock()
			defer tab.mu.Unlock()
			if len(tab.problems) > 0 {
				t.Errorf("the console has %q", tab.problems)
			}
		})
	}
	t.Run("a schedule that takes no time plays by steps", func(t *testing.T) {
		s := simulate(t, sched.AllReduce, "recursive-doubling", "hypercube", 4, 5, model.Model{})
		tab := b.open(t, s, viewOptions{})
		tab.press(kb.End)
		tab.at(2)
		if got := value[string](tab, clock); got != "step 2 of 2" {
			t.Errorf("the clock says %q", got)
		}
	})
}

// press types keys into the focused element.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// clock returns the clock's text at a time.
func (b *tab) clock(time float64) string {
	return fmt.Sprintf("time %v of %v time units", time, b.result.Time)
}

// scrub drags the scrubber to a position.
func (b *tab) scrub(to float64) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const scrub = document.getElementById("scrub");
		scrub.value = %v;
		scrub.dispatchEvent(new Event("input"));
	})()`, to)))
}

func (b *tab) speed(times string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("speed").value = "` + times + `"`))
}

func playsToTheEnd(b *tab) {
	b.at(1)
	b.speed("4")
	b.click("#play")
	b.until("it plays", position+" > 0")
	b.until("it stops at the end", "!("+playing+") && "+atEnd)
	b.at(3)
	if got, want := value[string](b, headline), fmt.Sprintf("Done at time %v.", b.result.Time); !strings.HasPrefix(got, want) {
		b.t.Errorf("the page says %q, want %q", got, want)
	}
	b.speed("0.25")
	b.click("#play") // starts again
	b.until("it plays again", playing+" && !("+atEnd+")")
}

func staysWhilePaused(b *tab) {
	b.speed("0.25")
	b.press(" ")
	b.until("it moves", position+" > 5")
	b.press(" ")
	before := value[float64](b, position)
	b.until("the browser draws ten more times", `new Promise((done) => {
		let n = 10;
		const again = () => (n-- > 0 ? requestAnimationFrame(again) : done(true));
		again();
	})`)
	if after := value[float64](b, position); after != before || value[bool](b, playing) {
		b.t.Errorf("it pauses at %v and is at %v", before, after)
	}
}

func scrubs(b *tab) {
	second, third := b.result.PerStep[1].Start, b.result.PerStep[2].Start
	for _, c := range []struct {
		time float64
		step int
	}{{second + 26, 2}, {third + 0.5, 3}, {second - 0.5, 1}, {b.result.Time, 3}, {second, 2}, {0, 1}} {
		b.scrub(c.time)
		b.at(c.step)
		if got, want := value[string](b, clock), b.clock(c.time); got != want {
			b.t.Errorf("the clock says %q, want %q", got, want)
		}
	}
}

func clicks(b *tab) {
	b.click("#next")
	b.at(2)
	b.click("#next")
	b.click("#previous")
	b.at(2)
	b.click("#steps a[href='#figure-3']")
	b.at(3)
	b.click("#figure-1 svg")
	b.at(1)
}

func handlesKeys(b *tab) {
	second, third, end := b.result.PerStep[1].Start, b.result.PerStep[2].Start, b.result.Time
	for _, c := range []struct {
		key  string
		step int
		time float64
	}{
		{kb.ArrowRight, 2, second}, {kb.ArrowRight, 3, third}, {kb.ArrowRight, 3, end}, {kb.ArrowRight, 3, end},
		{kb.ArrowLeft, 3, third}, {kb.ArrowLeft, 2, second}, {kb.Home, 1, 0}, {kb.ArrowLeft, 1, 0}, {kb.End, 3, end},
	} {
		b.press(c.key)
		b.at(c.step)
		if got := value[float64](b, position); got != c.time {
			b.t.Errorf("it is at %v, want %v", got, c.time)
		}
	}
	value[any](b, `document.getElementById("scrub").focus()`)
	b.press(kb.Home + kb.ArrowRight) // moves by steps, even on the scrubber
	b.at(2)
}

// leavesKeys checks that controls handle their own keys.
func leavesKeys(b *tab) {
	value[any](b, `document.getElementById("next").focus()`)
	b.press(" ") // presses the button
	b.at(2)
	value[any](b, `document.getElementById("speed").focus()`)
	b.press(kb.End)
	b.at(2)
	if got := value[string](b, `document.getElementById("speed").value`); got != "4" {
		b.t.Errorf("End in the choice of speeds chooses %s", got)
	}
	if got := value[string](b, `getComputedStyle(document.activeElement).outlineStyle`); got != "solid" {
		b.t.Errorf("the outline of the focused element is %s", got)
	}
}

// showsCongestion checks step 2, whose two messages cross the link from 1 to 2. CLAIM G3
func showsCongestion(b *tab) {
	b.press(kb.ArrowRight)
	const red = "rgb(200, 16, 46)"
	for link, congested := range map[string]bool{"0→1": false, "1→2": true, "2→3": false} {
		load := fmt.Sprintf(`document.querySelector(".frame.current [data-link='%s']")`, link)
		if got := value[string](b, `getComputedStyle(`+load+`).stroke`); (got == red) != congested {
			b.t.Errorf("link %s is %s; red, which is %s, must be 1→2 alone", link, got, red)
		}
		if !value[bool](b, load+".getBoundingClientRect().width > 10") {
			b.t.Errorf("link %s cannot be seen", link)
		}
	}
	if got := value[string](b, `Array.from(document.querySelectorAll(".frame.current .load-count"), (e) => e.textContent.trim()).join()`); got != "2" {
		b.t.Errorf("the loads in the figure are %q, want 2", got)
	}
	if got := value[string](b, `document.querySelector("#loads tbody tr.red").textContent`); got != "1→221" {
		b.t.Errorf("the row in red is %q, want link 1→2, asked to carry 2, carrying 1", got)
	}
}

// movesMessages checks step 2: while 0→2 moves, 1→3 waits.
func movesMessages(b *tab) {
	positions := func(time float64) (at struct{ Moving, Waiting []float64 }) {
		b.scrub(time)
		at.Moving = value[[]float64](b, `Array.from(document.querySelectorAll("#dots .message:not(.waiting)"), (c) => Number(c.getAttribute("cx")))`)
		at.Waiting = value[[]float64](b, `Array.from(document.querySelectorAll("#dots .message.waiting"), (c) => Number(c.getAttribute("cx")))`)
		return at
	}
	first := b.result.Log[1] // 0→2
	early, late, next := positions(first.Start+6), positions(first.End-6), positions(first.End+6)
	if len(early.Moving) != 1 || len(late.Moving) != 1 || early.Moving[0] >= late.Moving[0] {
		b.t.Errorf("0→2 is at %v, then at %v", early.Moving, late.Moving)
	}
	if len(early.Waiting) != 1 || !slices.Equal(early.Waiting, late.Waiting) {
		b.t.Errorf("1→3 waits at %v, then at %v", early.Waiting, late.Waiting)
	}
	if got := value[string](b, `document.getElementById("others").textContent`); !strings.Contains(got, "0→4 waits") {
		b.t.Errorf("of messages of other steps the page says %q", got)
	}
	if len(next.Moving) != 1 || slices.Contains(next.Waiting, late.Waiting[0]) || next.Moving[0] < late.Waiting[0] {
		b.t.Errorf("then %v move and %v wait, want 1→3 to move", next.Moving, next.Waiting)
	}
}

func countsSteps(b *tab) {
	b.press(kb.ArrowRight)
	b.click("input[value=steps]")
	b.at(2)
	if got := value[string](b, clock); got != "step 2 of 3" {
		b.t.Errorf("the clock says %q", got)
	}
	if got := value[int](b, `document.querySelectorAll("#dots .message:not(.waiting)").length`); got != 2 {
		b.t.Errorf("%d messages move in step 2, want both", got)
	}
}

// standsStill checks that playing shows only the starts of steps.
func standsStill(b *tab) {
	value[any](b, `window.seen = new Set(); new MutationObserver(() => seen.add(document.getElementById("clock").textContent)).observe(document.getElementById("clock"), { childList: true })`)
	b.speed("4")
	b.press(" ")
	b.until("it stops at the end", "!("+playing+") && "+atEnd)
	seen := value[[]string](b, `Array.from(seen)`)
	still := []string{b.clock(0), b.clock(b.result.PerStep[1].Start), b.clock(b.result.PerStep[2].Start), b.clock(b.result.Time)}
	for _, moment := range seen {
		if !slices.Contains(still, moment) {
			b.t.Errorf("it shows %q, want nothing but %q", moment, still)
		}
	}
}

func isDark(b *tab) {
	if got := value[string](b, `getComputedStyle(document.body).backgroundColor`); got != "rgb(20, 23, 29)" {
		b.t.Errorf("the background is %s", got)
	}
}

func fits(b *tab) {
	if got := value[int](b, `document.documentElement.scrollWidth`); got > 360 {
		b.t.Errorf("the page is %d wide", got)
	}
	if small := value[[]string](b, `Array.from(document.querySelectorAll("button, select"), (e) => e.id).filter((id) => document.getElementById(id).getBoundingClientRect().height < 44)`); len(small) > 0 {
		b.t.Errorf("less than 44 pixels high: %q", small)
	}
}

func standsWithoutScripts(b *tab) {
	if got := value[string](b, headline); !strings.Contains(got, "Step 1 of 3: 0→1.") {
		b.t.Errorf("the page says %q", got)
	}
	if value[bool](b, `document.getElementById("controls").checkVisibility() || document.getElementById("detail").checkVisibility()`) {
		b.t.Error("there are controls that do nothing")
	}
	for _, figure := range []string{"#figure", "#figure-1 svg", "#figure-3 svg"} {
		if !value[bool](b, fmt.Sprintf(`document.querySelector("%s").getBoundingClientRect().height > 30`, figure)) {
			b.t.Errorf("%s cannot be seen", figure)
		}
	}
}
