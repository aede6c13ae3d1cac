package join

import (
	"slices"
	"strings"
	"testing"
)

var hostLists = []struct{ list, want string }{
	{"n[8-11]", "n8 n9 n10 n11"},
	{"n[08-11]", "n08 n09 n10 n11"},
	{"n[098-101]", "n098 n099 n100 n101"},
	{"n[001-002,10]", "n001 n002 n10"},
	{"a,b[1-2],c", "a b1 b2 c"},
	{"rack[1-2]n[1-2]", "rack1n1 rack1n2 rack2n1 rack2n2"},
	{"tux[1-2][1-2]", "tux11 tux12 tux21 tux22"},
	{"n1,n1", "n1 n1"},
	{"n[1-3]x", "n1x n2x n3x"},
	{"n[1-2]-[3-4].foo", "n1-3.foo n1-4.foo n2-3.foo n2-4.foo"},
	{"n[3]", "n3"},
	{"node", "node"},
}

func TestHostListsStandForNames(t *testing.T) {
	for _, test := range hostLists {
		got, err := expandHosts(test.list)
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, %v, want %s", test.list, got, err, test.want)
		}
	}
	if got, err := expandHosts("n[1-65536]"); err != nil || len(got) != maxHosts {
		t.Errorf("%d names, %v", len(got), err)
	}
}

func TestHostListsThatCannotBeAreErrors(t *testing.T) {
	for _, test := range []struct{ list, want string }{
		{"", "a name is empty"},
		{"a,,b", "a name is empty"},
		{"a,", "a name is empty"},
		{"n[]", `"" is no range of numbers`},
		{"n[3-1]", `"3-1" is no range of numbers`},
		{"x[a-c]", `"a-c" is no range of numbers`},
		{"x[1-2-3]", `"1-2-3" is no range`},
		{"x[-1]", `"-1" is no range`},
		{"n[1-2", "a bracket is not closed"},
		{"n1-2]", "a closing bracket has no opening one"},
		{"n[1[2]]", "brackets in brackets"},
		{"n[1-65537]", "more than 65536 names"},
		{"a,n[1-65536]", "more than 65536 names"},
		{"n[0-300]m[0-300]", "more than 65536 names"},
		{"n[1-2][0-9223372036854775807]", "more than 65536 names"},
		{"n[18446744073709551615-18446744073709551616]", "is no range"},
		{strings.Repeat("n", 256), "more than 255 bytes"},
		{"n[1-9]" + strings.Repeat("n", 254), "more than 255 bytes"},
		{"n[" + strings.Repeat("0", 255) + "1]", "is no range"},
	} {
		got, err := expandHosts(test.list)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %d names, error %v, want one with %s", test.list, len(got), err, test.want)
		}
	}
}

// However a list is written, its names are few, short, and have no brackets.
func FuzzHostList(f *testing.F) {
	for _, test := range hostLists {
		f.Add(test.list)
	}
	f.Add("n[1-65536],x")
	f.Add("a[1-2][3-4][5-6]b,[0001-3]")
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := expandHosts(list)
		if len(hosts) > maxHosts || (err == nil) != (len(hosts) > 0) {
			t.Fatalf("%.200q: %d names, %v", list, len(hosts), err)
		}
		for _, name := range hosts {
			if name == "" || len(name) > maxName || strings.ContainsAny(name, "[],") {
				t.Fatalf("%.200q: name %q", list, name)
			}
		}
	})
}

func TestTasksPerNodeAreNumbers(t *testing.T) {
	for _, test := range []struct {
		text string
		want []int // nil for an error
	}{
		{"2,1(x2)", []int{2, 1, 1}},
		{"4(x2),3", []int{4, 4, 3}},
		{"7", []int{7}},
		{"", nil}, {"0", nil}, {"2,", nil}, {"-1", nil}, {"2(x0)", nil}, {"2(x", nil}, {"2(x1", nil}, {"2x1", nil},
		{"1(x65537)", nil}, {"1(x65536),1", nil}, {"4294967297", nil}, {"1(x4294967297)", nil},
	} {
		got, err := expandTasks(test.text)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v, %v, want %v", test.text, got, err, test.want)
		}
	}
}

// FuzzEnvironment has an environment of any variables, one a line. Find returns a place
// that can be, or an error; and without the place there is none.
func FuzzEnvironment(f *testing.F) {
	for _, set := range []string{manual, step, torch, indexed, openMPI, slurmPMIx, hydraPort, batch} {
		f.Add(strings.ReplaceAll(set, " ", "\n"))
	}
	f.Add("SLURM_STEP_RESV_PORTS=1-65535,3\n" + strings.ReplaceAll(step, " ", "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		set := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			if name, value, ok := strings.Cut(line, "="); ok && name != "PMI_FD" { // of this process
				set[name] = value
			}
		}
		p, err := find(lookupIn(set), pod)
		if err == nil {
			checkPlace(t, p)
		}
		env := WithoutPlace(words(set))
		left := map[string]string{}
		for _, v := range env {
			name, value, _ := strings.Cut(v, "=")
			left[name] = value
		}
		if p, err := find(lookupIn(left), pod); err != nil || p.Launcher != None {
			t.Errorf("%q without its place: %+v, %v", text, p, err)
		}
	})
}

func checkPlace(t *testing.T, p Place) {
	t.Helper()
	if p.Size == unknown {
		if p.connect == nil {
			t.Errorf("%+v: nobody knows the size", p)
		}
		return
	}
	if p.Size < 1 || p.Size > maxRanks || p.Rank < 0 || p.Rank >= p.Size || p.Reason == "" {
		t.Errorf("impossible: %+v", p)
	}
	if (p.Size > 1 && p.connect == nil) != (p.Rendezvous != nil) {
		t.Errorf("no way or two ways to meet: %+v", p)
	}
	if r := p.Rendezvous; r != nil {
		if len(r.Hosts) == 0 || len(r.Ports) == 0 || slices.Contains(r.Hosts, "") || slices.Min(r.Ports) < 1 || slices.Max(r.Ports) > maxPort {
			t.Errorf("impossible: %+v", r)
		}
	}
}
