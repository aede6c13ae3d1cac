package transporttest

import "testing"

// testArrivedAfterFailedSend has rank 1 find out by sending that rank 0 has left, before
// it receives what rank 0 had sent.
func testArrivedAfterFailedSend(t *testing.T, start Start) {
	for _, size := range []int{0, 1, 1000} {
		message := pattern(make([]byte, size), 1)
		j := open(t, start, 2)
		if err := send(j.ctx, j.ends[0], sig, 1, message); err != nil {
			t.Fatal(err)
		}
		if err := sendTagged(j.ctx, j.ends[0], 1, match, tagged(1, size)); err != nil {
			t.Fatal(err)
		}
		if err := j.ends[0].Close(); err != nil {
			t.Fatal(err)
		}
		j.until(func() bool { return sendTagged(j.ctx, j.ends[1], 0, match, tagged(2, 100)) != nil })
		into := make([]byte, size)
		if err := recv(j.ctx, j.ends[1], sig, 0, into); err != nil || string(into) != string(message) {
			t.Errorf("a message of a step, of %d bytes, arrived changed, or %v", size, err)
		}
	}
}
