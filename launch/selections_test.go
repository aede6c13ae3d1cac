package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/machine"
	"github.com/chorale-go/chorale/internal/processors"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/model"
)

// machineFile writes a profile with a rule for each transport, by an algorithm.
func machineFile(t *testing.T, algorithm string) string {
	t.Helper()
	p := model.Profile{Version: model.ProfileVersion, Node: model.Node{Processors: 2, Copy: model.Line(0, 1)}}
	for _, transport := range []string{"inproc", "shm", "tcp"} {
		p.SetSelection(model.Selection{
			Version: model.SelectionVersion, Transport: transport, Processors: processors.Available(),
			Rules: []model.Rule{{Collective: "bcast", Ranks: 4, To: 100, Algorithm: algorithm, Time: 1, BuiltIn: "binomial", BuiltInTime: 2}},
		})
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "machine.json")
	if err := os.WriteFile(file, text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// digestOf returns the digest that ranks of a transport report with the file.
func digestOf(t *testing.T, file, transport string) string {
	t.Helper()
	found, err := machine.Find(file)
	if err != nil {
		t.Fatal(err)
	}
	return machine.Digest(machine.Of(found.List, transport))
}

func TestRanksUnderAnotherLauncherTakeTheSelectionsThatAllHaveFound(t *testing.T) {
	file := machineFile(t, "linear")
	b := startByHand(t, 3, setAll("CHORALE_TRANSPORT=tcp", "CHORALE_MACHINE="+file), "describe")
	for rank, r := range b.reports() {
		if r.Selections != 1 || r.SelectionsDigest != digestOf(t, file, "tcp") || r.SelectionsReason != "" {
			t.Errorf("rank %d: %+v", rank, r)
		}
	}
}

func TestRanksThatHaveFoundOtherSelectionsTakeTheBuiltInChoicesOnAllHosts(t *testing.T) {
	a, b := machineFile(t, "linear"), machineFile(t, "chain")
	hosts, files := []string{"a", "b", "a", "c"}, []string{a, b, a, "off"}
	job := startByHand(t, 4, func(rank int) []string {
		return []string{"CHORALE_TRANSPORT=tcp", "CHORALE_HOST=" + hosts[rank], "CHORALE_MACHINE=" + files[rank]}
	}, "describe")
	want := fmt.Sprintf("the machine's profile has other selections for some ranks than for the rest: ranks 0, 2 (a) %s, rank 1 (b) %s, rank 3 (c) none",
		digestOf(t, a, "tcp"), digestOf(t, b, "tcp"))
	for rank, r := range job.reports() {
		if r.Selections != 0 || r.SelectionsDigest != "" || r.SelectionsReason != want {
			t.Errorf("rank %d: %+v, want %s", rank, r, want)
		}
	}
	warning := "chorale: " + want + "; all take the built-in choices: want the same file on all hosts, or CHORALE_MACHINE=off\n"
	if n := strings.Count(job.String(), warning); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, job)
	}
}

func TestARankWhoseSelectionsCannotBeReadSaysSo(t *testing.T) {
	b := startByHand(t, 2, setAll("CHORALE_TRANSPORT=tcp", "CHORALE_MACHINE=/absent.json"), "describe")
	if statuses := b.wait(); statuses[0] != 1 || !strings.Contains(b.String(), "rank 0: CHORALE_MACHINE=/absent.json: there is no profile /absent.json: chorale tune makes one") {
		t.Errorf("%v:\n%s", statuses, b)
	}
}

// The launcher hands its own selections to all ranks, which read no file.
func TestRanksOfALauncherTakeItsSelections(t *testing.T) {
	file := machineFile(t, "linear")
	for _, transport := range []string{"shm", "tcp", "auto"} {
		var digests []string
		for _, r := range reportsOf(t, Config{Size: 3, Transport: transport, Env: append(os.Environ(), "CHORALE_MACHINE="+file)}) {
			digests = append(digests, fmt.Sprint(r.Selections, r.SelectionsDigest, r.SelectionsReason))
		}
		slices.Sort(digests)
		if digests = slices.Compact(digests); len(digests) != 1 || strings.HasPrefix(digests[0], "0") {
			t.Errorf("%s: the ranks have %q: want the same selections", transport, digests)
		}
	}
}

// chosen has rank 1 end. The others regroup with the one that is started anew, and all of them
// say what selections they have.
func chosen([]string) error {
	ctx := context.Background()
	ep, env, err := Join(ctx)
	if err != nil {
		return err
	}
	defer ep.Close()
	if !env.Respawned {
		if _, err := agreeOn(ep, 0); err != nil {
			return err
		}
		awaitAgreed(ep, jobRanks(env), []int{1})
		if ep.Rank() == 1 {
			end("killed")
		}
		if err := awaitLoss(ep, 1); err != nil {
			return err
		}
		fresh, joined, err := env.Regroup(ctx, 1, []int{0, 2})
		if err != nil {
			return err
		}
		defer fresh.Close()
		env = joined
	}
	fmt.Println("selections", machine.Digest(env.Selections))
	return nil
}

func TestARankThatIsStartedAnewTakesTheSelectionsOfTheOthers(t *testing.T) {
	file := machineFile(t, "linear")
	cfg := config(t, 3, "chosen")
	cfg.Transport, cfg.Respawn, cfg.Env = "tcp", 1, append(os.Environ(), "CHORALE_MACHINE="+file)
	var out, stderr lockedBuilder
	cfg.Stdout, cfg.Stderr = &out, &stderr
	if err := Run(t.Context(), cfg); err != nil {
		t.Errorf("%v\n%s", err, &stderr)
	}
	if n := strings.Count(out.String(), "selections "+digestOf(t, file, "tcp")+"\n"); n != 3 {
		t.Errorf("%d ranks have the selections, want 3:\n%s", n, &out)
	}
}

// reportsOf returns what the ranks of a job report.
func reportsOf(t *testing.T, cfg Config) (all []Report) {
	t.Helper()
	of := config(t, cfg.Size, "describe")
	of.Transport, of.Env, of.Unlabeled = cfg.Transport, cfg.Env, true
	var out, stderr lockedBuilder
	of.Stdout, of.Stderr = &out, &stderr
	if err := Run(t.Context(), of); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	for d := json.NewDecoder(strings.NewReader(out.String())); d.More(); {
		var r Report
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%v:\n%s", err, &out)
		}
		all = append(all, r)
	}
	if len(all) != cfg.Size {
		t.Fatalf("%d reports:\n%s", len(all), &out)
	}
	return all
}

func TestRanksOfALauncherWithoutSelectionsLearnWhy(t *testing.T) {
	for _, r := range reportsOf(t, Config{Size: 2, Transport: "tcp", Env: append(os.Environ(), "CHORALE_MACHINE=off")}) {
		if r.Selections != 0 || r.SelectionsReason != "CHORALE_MACHINE=off" {
			t.Errorf("got %+v", r)
		}
	}
}

func TestALauncherRefusesAProfileThatItCannotRead(t *testing.T) {
	for _, transport := range []string{"tcp", "inproc"} {
		err := Run(context.Background(), Config{Size: 2, Transport: transport, Program: os.Args[0], Env: []string{"CHORALE_MACHINE=/absent.json"}})
		if err == nil || !strings.HasPrefix(err.Error(), "CHORALE_MACHINE=/absent.json: there is no profile /absent.json") || Status(err) != 2 {
			t.Errorf("%s: got %v, status %d", transport, err, Status(err))
		}
	}
}

func TestSelectionsForOtherProcessorsDoNotApply(t *testing.T) {
	joined := control.JoinedMessage{Selections: []model.Selection{{Transport: "shm", Processors: 8, Rules: make([]model.Rule, 3)}}}
	for _, test := range []struct {
		env    JobEnv
		rules  int
		reason string
	}{
		{JobEnv{Transport: "shm", Processors: 8}, 3, ""},
		{JobEnv{Transport: "shm", Processors: 4}, 0, "the machine's profile is for 8 processors, and the ranks of a host share 4"},
		{JobEnv{Transport: "tcp", Processors: 8}, 0, ""},
	} {
		test.env.takeSelections(joined)
		if got := machine.Count(test.env.Selections); got != test.rules || test.env.SelectionsReason != test.reason {
			t.Errorf("%+v: want %d rules, %q", test.env, test.rules, test.reason)
		}
	}
}

// The file is of the launcher's host. Ranks elsewhere have what they were told.
func TestRanksOnOtherHostsDoNotGetTheNameOfTheFile(t *testing.T) {
	got := (&Remote{}).environment([]string{"CHORALE_MACHINE=/a", "CHORALE_ALGORITHM=ring", "CHORALE_SSH=s"})
	if !slices.Equal(got, []string{"CHORALE_ALGORITHM=ring"}) {
		t.Errorf("got %v", got)
	}
}
