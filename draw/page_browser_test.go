package draw_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/chorale-go/chorale/draw"
	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/sim"
)

// browserTime limits the time of a test in a browser.
const browserTime = 2 * time.Minute

// A browser is a running Chromium.
type browser struct{ ctx context.Context }

// newBrowser starts a Chromium with its own profile, and stops it at the end of the
// test. Without a Chromium the test is skipped, or fails in CI.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a browser's time: half a minute")
	}
	program := findBrowser(t)
	limit, cancel := context.WithTimeout(context.Background(), browserTime)
	t.Cleanup(cancel)
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-component-update", true))
	allocator, end := chromedp.NewExecAllocator(limit, flags...)
	t.Cleanup(end)
	quiet := func(string, ...any) {} // the tests report problems themselves
	ctx, _ := chromedp.NewContext(allocator, chromedp.WithLogf(quiet), chromedp.WithErrorf(quiet))
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", program, err)
	}
	process := chromedp.FromContext(ctx).Browser.Process()
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits for its end
			t.Errorf("the browser does not exit cleanly: %v", err)
		}
		if process.Signal(syscall.Signal(0)) == nil {
			t.Errorf("the browser, process %d, outlives its test", process.Pid)
		}
	})
	return &browser{ctx}
}

func findBrowser(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testenv.Skip(t, "none of %s is in PATH", strings.Join(names, ", "))
	return ""
}

// A tab is a browser tab with a page.
type tab struct {
	t      *testing.T
	ctx    context.Context
	url    string
	result *sim.Result // of the simulation

	mu       sync.Mutex
	problems []string // exceptions and console messages
	requests []string // URLs that the page loads
}

// viewOptions are conditions under which a page is viewed.
type viewOptions struct {
	width       int64             // of the window, in pixels; 0 for 1280
	preferences map[string]string // media features
	noScript    bool
}

// open opens the page of a scene in a tab.
func (b *browser) open(t *testing.T, s draw.Scene, r viewOptions) *tab {
	t.Helper()
	shown := b.openPage(t, renderPage(t, s), r)
	shown.result = s.Result
	return shown
}

// openPage writes a page to a file, and opens it in a tab.
func (b *browser) openPage(t *testing.T, page string, r viewOptions) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	shown := &tab{t: t, ctx: ctx, url: "file://" + filepath.ToSlash(file)}
	if err := chromedp.Listen(ctx, shown.listen); err != nil {
		t.Fatal(err)
	}
	if r.width == 0 {
		r.width = 1280
	}
	var features []*emulation.MediaFeature
	for name, value := range r.preferences {
		features = append(features, &emulation.MediaFeature{Name: name, Value: value})
	}
	call(shown, network.Enable, network.EnableParams{})
	call(shown, runtime.Enable, cdp.Empty{})
	call(shown, log.Enable, cdp.Empty{})
	call(shown, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	call(shown, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: r.width, Height: 900, DeviceScaleFactor: 1, Mobile: r.width < 600})
	call(shown, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: r.noScript})
	shown.do(chromedp.Navigate(shown.url))
	return shown
}

// call sends a command to the tab.
func call[P, R any](b *tab, order cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, order, params); err != nil {
		b.t.Fatalf("%s: %v", order.Method, err)
	}
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, "console."+string(e.Type))
	case *log.EventEntryAdded:
		b.problems = append(b.problems, e.Entry.Text)
	}
}

// do runs actions in the page.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// value returns the value of a script.
func value[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits until a condition holds in the page.
func (b *tab) until(what, condition string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		b.t.Fatalf("%s: never: %v", what, err)
	}
}
