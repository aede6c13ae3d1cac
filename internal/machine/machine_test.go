package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/model"
)

// selection returns one rule.
func selection(transport, algorithm string) model.Selection {
	return model.Selection{
		Version: model.SelectionVersion, Transport: transport, Processors: 2, Origin: model.Origin{Host: "a"},
		Rules: []model.Rule{{Collective: "bcast", Ranks: 4, To: 100, Algorithm: algorithm, Time: 1, BuiltIn: "binomial", BuiltInTime: 2}},
	}
}

// write writes a profile with selections, and returns its file.
func write(t *testing.T, file string, selections ...model.Selection) string {
	t.Helper()
	p := model.Profile{Version: model.ProfileVersion, Node: model.Node{Processors: 2, Copy: model.Line(0, 1)}, Selections: selections}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	return writeText(t, file, text.String())
}

func writeText(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// own returns the user's own profile, in a directory of the test.
func own(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, dir)
	}
	path, err := Path()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileThatIsNamedHasTheSelections(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "p.json"), selection("shm", "linear"))
	s, err := Find(file)
	if err != nil || s.File != file || s.Reason != "" || Count(s.List) != 1 || s.List[0].Rules[0].Algorithm != "linear" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestAFileThatIsNamedAndHasNoneIsAnError(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"{}":            "not a profile: it has no version",
		"what":          "not a profile: ",
		`{"version":7}`: "a profile of version 7: want version 1: chorale tune makes one",
	} {
		file := writeText(t, filepath.Join(dir, "p.json"), text)
		if _, err := Find(file); err == nil || !strings.HasPrefix(err.Error(), "CHORALE_MACHINE="+file+": "+file+": "+want) {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
	file := write(t, filepath.Join(dir, "none.json"))
	if _, err := Find(file); err == nil || !strings.HasSuffix(err.Error(), "has no selections: chorale tune --select makes them") {
		t.Errorf("a profile without selections: the error is %v", err)
	}
	if _, err := Find(filepath.Join(dir, "absent")); err == nil || !strings.Contains(err.Error(), "there is no profile "+filepath.Join(dir, "absent")) {
		t.Errorf("no file: the error is %v", err)
	}
}

func TestTheUsersOwnProfileNeverStandsInTheWay(t *testing.T) {
	path := own(t)
	check := func(what string, rules int, reason string) {
		t.Helper()
		s, err := Find("")
		if err != nil || Count(s.List) != rules || !strings.Contains(s.Reason, reason) || (s.Reason == "") != (reason == "") {
			t.Errorf("%s: got %+v, %v", what, s, err)
		}
	}
	check("no file", 0, "")
	write(t, path)
	check("a file without selections", 0, "")
	write(t, path, selection("shm", "linear"))
	check("a file with selections", 1, "")
	writeText(t, path, "{")
	check("a file that is none", 0, path+": not a profile: ")
	writeText(t, path, `{"version":7}`)
	check("a file of another version", 0, "a profile of version 7")
}

func TestOffMeansNone(t *testing.T) {
	write(t, own(t), selection("shm", "linear"))
	if s, err := Find(Off); err != nil || s.List != nil || s.Reason != "CHORALE_MACHINE=off" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestAJobTakesTheSelectionsOfItsTransport(t *testing.T) {
	list := []model.Selection{selection("shm", "linear"), selection("tcp", "chain"), {Transport: "inproc"}}
	of := Of(list, "tcp")
	if len(of) != 1 || of[0].Rules[0].Algorithm != "chain" || of[0].Origin != (model.Origin{}) {
		t.Errorf("got %+v", of)
	}
	if of := Of(list, "inproc"); of != nil {
		t.Errorf("a selection without rules: got %+v", of)
	}
}

func TestADigestTellsChoicesApartAndNothingElse(t *testing.T) {
	a := selection("shm", "linear")
	want := Digest([]model.Selection{a})
	if Digest(nil) != "" || len(want) != 16 {
		t.Errorf("the digests are %q and %q", Digest(nil), want)
	}
	again := selection("shm", "linear")
	again.Origin.Host, again.Rules[0].Time = "b", 7
	if got := Digest([]model.Selection{again}); got != want {
		t.Errorf("another host and time: %q, want %q", got, want)
	}
	for what, change := range map[string]func(*model.Selection){
		"transport":  func(s *model.Selection) { s.Transport = "tcp" },
		"processors": func(s *model.Selection) { s.Processors++ },
		"collective": func(s *model.Selection) { s.Rules[0].Collective = "reduce" },
		"ranks":      func(s *model.Selection) { s.Rules[0].Ranks++ },
		"from":       func(s *model.Selection) { s.Rules[0].From++ },
		"to":         func(s *model.Selection) { s.Rules[0].To++ },
		"algorithm":  func(s *model.Selection) { s.Rules[0].Algorithm = "chain" },
	} {
		other := selection("shm", "linear")
		change(&other)
		if Digest([]model.Selection{other}) == want {
			t.Errorf("another %s has the same digest", what)
		}
	}
}

func TestAProcessReadsAFileOnce(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "p.json"), selection("shm", "linear"))
	first, err := Once(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if again, err := Once(file); err != nil || again != first {
		t.Errorf("got %p, %v: want %p", again, err, first)
	}
}

func TestTheLastVariableOfAnEnvironmentCounts(t *testing.T) {
	for want, environ := range map[string][]string{
		"":    {"A=b", "CHORALE_MACHINERY=x"},
		"b":   {"CHORALE_MACHINE=a", "CHORALE_MACHINE=b", "C=d"},
		"off": {"CHORALE_MACHINE=off"},
	} {
		if got := Lookup(environ); got != want {
			t.Errorf("%q: got %q, want %q", environ, got, want)
		}
	}
}
