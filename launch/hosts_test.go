package launch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostsAreListedWithTheirSlots(t *testing.T) {
	for _, test := range []struct {
		list string
		want []Host
	}{
		{"a", []Host{{"a", 1}}},
		{"a,b:4,c", []Host{{"a", 1}, {"b", 4}, {"c", 1}}},
		{"a:2, b,a:3", []Host{{"a", 5}, {"b", 1}}},
		{"user@a:2,other@a", []Host{{"user@a", 2}, {"other@a", 1}}},
		{"[fe80::1%eth0]:2,user@[::1]", []Host{{"fe80::1%eth0", 2}, {"user@::1", 1}}},
		{"pods/a-0.b:3", []Host{{"pods/a-0.b", 3}}},
	} {
		got, err := ParseHosts(test.list)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", test.list, err, diff)
		}
	}
}

func TestAWrongListOfHostsIsAUsageError(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{"", `hosts "": host "": want [user@]host`},
		{"a,,b", `hosts "a,,b": host "": want`},
		{"a:0", `"0" slots: want a number from 1 to 65536`},
		{"a:", `"" slots: want a number`},
		{"a:two", `"two" slots`},
		{"a:-1", `"-1" slots`},
		{"a:65536,b", "host b: more than 65536 slots altogether"},
		{"fe80::1", "want an IPv6 address in brackets"},
		{"[::1", "want a ]"},
		{"[::1]2", "want a colon and the slots"},
		{"-oProxyCommand=x", "want a name that does not begin with -"},
		{"u@-x", "want a name that does not begin with -"},
		{"@a", "want [user@]host"},
		{"a b", "want letters, digits"},
		{"a;b", "want letters, digits"},
		{"$(a)", "want letters, digits"},
		{strings.Repeat("a", 256), "want at most 255 bytes"},
	} {
		_, err := ParseHosts(test.list)
		if err == nil || !strings.Contains(err.Error(), test.want) || Status(err) != 2 {
			t.Errorf("%q: %v, want %s", test.list, err, test.want)
		}
	}
}

func TestHostFilesOfBothFormsAreRead(t *testing.T) {
	const file = `# of Hydra
a
b:4   # four
c:2 binding=core user=me

	# of Open MPI
d slots=3 max_slots=8
you@e slots=2
[::1]:2
a slots=5
f max-slots=2` + "\r\n"
	want := []Host{{"a", 6}, {"b", 4}, {"me@c", 2}, {"d", 3}, {"you@e", 2}, {"::1", 2}, {"f", 1}}
	got, err := ReadHosts(strings.NewReader(file), "hosts")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAnErrorOfAHostFileNamesTheLine(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"", "f: no host: want lines as in node1:4"},
		{"# nothing\n\n", "f: no host"},
		{"a\nb:x\n", `f:2: "x" slots: want a number`},
		{"a\n\nb slots=\n", `f:3: "" slots`},
		{"a slots=0", `f:1: "0" slots`},
		{"a:2 slots=3", "f:1: host a: both a:2 and slots=3: want the slots once"},
		{"a slots=2 slots=3", "f:1: host a: both a and slots=3"},
		{"a sluts=3", `f:1: host a: "sluts=3": want slots=N, user=NAME`},
		{"a 4", `f:1: host a: "4": want slots=N`},
		{"a user=-x", "f:1: host \"-x@a\": want a name that does not begin with -"},
		{"me@a user=you", "f:1: host me@a: it has a user, and user=you"},
		{"a\n" + strings.Repeat("b", maxHostLine+1), "f:2: want a line of at most 4096 bytes"},
		{strings.Repeat("#\n", maxHostFile/2+1), "want a file of at most 16777216 bytes"},
		{"a:65536\nb", "f:2: host b: more than 65536 slots altogether"},
	} {
		_, err := ReadHosts(strings.NewReader(test.file), "f")
		if err == nil || !strings.Contains(err.Error(), test.want) || Status(err) != 2 {
			t.Errorf("%.40q: %v, want %s", test.file, err, test.want)
		}
	}
}

func TestRanksFillHostsOrGoRound(t *testing.T) {
	hosts := []Host{{"a", 1}, {"b", 4}, {"c", 2}}
	for _, test := range []struct {
		size   int
		rounds bool
		want   string
	}{
		{7, false, "[[0] [1 2 3 4] [5 6]]"},
		{3, false, "[[0] [1 2] []]"},
		{1, false, "[[0] [] []]"},
		{7, true, "[[0] [1 3 5 6] [2 4]]"},
		{4, true, "[[0] [1 3] [2]]"},
	} {
		if got := fmt.Sprint(place(hosts, test.size, test.rounds)); got != test.want {
			t.Errorf("%d ranks, in rounds %v: %s, want %s", test.size, test.rounds, got, test.want)
		}
	}
}

// FuzzHosts reads any host file. What it takes for hosts are names that are safe as an
// argument of ssh, with slots in bounds, and each once.
func FuzzHosts(f *testing.F) {
	f.Add([]byte("a\nb:4 # four\nc:2 binding=core user=me\n"))
	f.Add([]byte("d slots=3 max_slots=8\nyou@e slots=2\n[::1]:2\nd slots=5\r\n"))
	f.Add([]byte("-oProxyCommand=x\na;b\n\x00\n"))
	f.Add([]byte("a:65536\na:1\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		hosts, err := ReadHosts(bytes.NewReader(file), "f")
		if (err == nil) == (len(hosts) == 0) {
			t.Fatalf("%d hosts, %v", len(hosts), err)
		}
		var names []string
		for _, h := range hosts {
			if h.Slots < 1 || checkHost(h.Name) != nil || strings.ContainsAny(h.Name, " \t'\"\\$`;&|<>()") {
				t.Errorf("host %+v", h)
			}
			names = append(names, h.Name)
		}
		slices.Sort(names)
		if slots := slotsOf(hosts); slots > maxRanks || len(slices.Compact(names)) != len(hosts) {
			t.Errorf("%d slots of %q", slots, names)
		}
		if err != nil {
			return
		}
		size := slotsOf(hosts)
		for _, rounds := range []bool{false, true} {
			var all []int
			for i, ranks := range place(hosts, size, rounds) {
				if len(ranks) != hosts[i].Slots {
					t.Errorf("host %v has ranks %v", hosts[i], ranks)
				}
				all = append(all, ranks...)
			}
			slices.Sort(all)
			if len(slices.Compact(all)) != size {
				t.Errorf("%d ranks of %d are placed", len(slices.Compact(all)), size)
			}
		}
	})
}

// slotsOf returns the number of slots of all hosts.
func slotsOf(hosts []Host) (slots int) {
	for _, h := range hosts {
		slots += h.Slots
	}
	return slots
}
