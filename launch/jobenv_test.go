package launch

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/launch/join"
)

func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

var tcpEnv = JobEnv{Launched: true, Transport: "tcp", Rank: 2, Size: 3, Control: "127.0.0.1:4711", Secret: proof.Secret{31: 255}}

func TestAJobEnvSurvivesTheEnvironment(t *testing.T) {
	for _, want := range []JobEnv{
		tcpEnv,
		{Launched: true, Transport: "inproc", Size: 7, Processors: 2, Stall: 90 * time.Second},
		{Launched: true, Transport: "shm", Rank: 1, Size: 2, Control: "127.0.0.1:4711", Secret: proof.Secret{31: 255}, Memory: 3, Processors: 64},
		{Launched: true, Transport: "shm", Mixed: true, Size: 2, Control: "127.0.0.1:4711", Memory: 3},
		{Launched: true, Transport: "shm", Rank: 1, Size: 2, Control: "127.0.0.1:4711", Respawned: true},
	} {
		env := make(map[string]string)
		for _, v := range want.environ() {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		got, err := parseJobEnv(lookupIn(env))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
}

func TestAProcessWithoutALauncherIsTheOnlyRank(t *testing.T) {
	got, err := parseJobEnv(lookupIn(nil))
	if err != nil || got.Launched || got.Transport != "inproc" || got.Size != 1 || got.Foreign.Place.Launcher != join.None {
		t.Errorf("%+v, %v; want the only rank", got, err)
	}
}

func TestAnInconsistentEnvironmentIsAnError(t *testing.T) {
	good := make(map[string]string)
	for _, v := range tcpEnv.environ() {
		name, value, _ := strings.Cut(v, "=")
		good[name] = value
	}
	const unset = "(unset)"
	for _, test := range []struct{ name, value, want string }{
		{envSize, "0", "CHORALE_SIZE=0: want a number of ranks, 1 or more"},
		{envProcessors, "0", "CHORALE_PROCESSORS=0: want a number of processors, 1 or more"},
		{envSize, "three", "CHORALE_SIZE=three: want a number of ranks, 1 or more"},
		{envSize, unset, "CHORALE_SIZE is not set, but CHORALE_CONTROL is: chorale run sets both"},
		{envRank, "3", "CHORALE_RANK=3: want a rank from 0 to 2"},
		{envRank, "-1", "CHORALE_RANK=-1: want a rank from 0 to 2"},
		{envRank, unset, "CHORALE_RANK is not set, but CHORALE_CONTROL is: chorale run sets both"},
		{envTransport, "pigeon", "CHORALE_TRANSPORT=pigeon: want auto, inproc, shm, tcp or mpi"},
		{envTransport, unset, "CHORALE_TRANSPORT is not set, but CHORALE_CONTROL is: chorale run sets both"},
		{envControl, unset, "CHORALE_RENDEZVOUS is not set, but CHORALE_RANK is: want both, or neither"},
		{envToken, "12", "CHORALE_TOKEN: want 64 hexadecimal digits: chorale run sets it"},
		{envToken, strings.Repeat("x", 64), "CHORALE_TOKEN: want 64 hexadecimal digits: chorale run sets it"},
		{envToken, strings.Repeat("0", 66), "CHORALE_TOKEN: want 64 hexadecimal digits: chorale run sets it"},
		{envHost, strings.Repeat("h", 256), "CHORALE_HOST has 256 bytes: want at most 255"},
		{envToken, unset, "CHORALE_TOKEN is not set, but CHORALE_CONTROL is: chorale run sets both"},
	} {
		env := maps.Clone(good)
		if env[test.name] = test.value; test.value == unset {
			delete(env, test.name)
		}
		if _, err := parseJobEnv(lookupIn(env)); err == nil || err.Error() != test.want {
			t.Errorf("%s=%s: %v, want %s", test.name, test.value, err, test.want)
		}
	}
}
