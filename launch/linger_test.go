package launch

import (
	"testing"
	"time"
)

func TestHowLongARankLingersIsADuration(t *testing.T) {
	env := map[string]string{envSize: "2", envTransport: "inproc"}
	for _, test := range []struct {
		value string
		want  time.Duration
	}{
		{"90s", 90 * time.Second},
		{"1h30m", 90 * time.Minute},
		{"0", 0},
		{"-1s", 0},
		{"90", 0},
		{"", 0},
		{"soon", 0},
	} {
		env[envLinger] = test.value
		got, err := parseJobEnv(lookupIn(env))
		wrong := "CHORALE_LINGER=" + test.value + ": want a duration of more than 0, as in 90s or 10m"
		if got.Linger != test.want || (err == nil) != (test.want > 0) || err != nil && err.Error() != wrong {
			t.Errorf("%q: %v, %v; want %v", test.value, got.Linger, err, test.want)
		}
	}
}
