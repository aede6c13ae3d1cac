package control

import "testing"

func TestALongRecordIsDropped(t *testing.T) {
	const most = 4 * recordPart
	var r record
	part := make([]byte, recordPart)
	for range most / recordPart {
		r.add(part, most)
	}
	if len(r.bytes) != most {
		t.Fatalf("%d bytes of a record are kept, want %d", len(r.bytes), most)
	}
	for range 3 {
		if r.add(part[:1], most); r.bytes != nil {
			t.Fatalf("%d bytes of a longer one are kept: a part of a record cannot be read", len(r.bytes))
		}
	}
}
