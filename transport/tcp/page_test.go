package tcp

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/pagetest"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	pagetest.CheckNumbers(t, "TCP", map[string]int64{
		"version": version, "requestLen": int64(requestLen), "replyLen": int64(replyLen),
		"ConnectTimeout": int64(network.ConnectTimeout), "HeadStart": int64(network.HeadStart), "TextMax": network.TextMax, "LossTimeout": int64(network.LossTimeout), "crossTimeout": int64(crossTimeout), "lookAgain": int64(lookAgain),
		"headerLen": headerLen, "tagLen": tagLen, "callMax": callMax, "reasonMax": reasonMax, "bodyMax": bodyMax, "exchangeMax": exchangeMax, "heldMax": heldMax, "copyMax": copyMax,
		"inLen": inLen, "directMin": directMin, "bulkLen": bulkLen, "overrunMax": overrunMax, "streamLen": streamLen,
		"partialMax": partialMax, "heldContextsMax": heldContextsMax,
		"readAheadPause": int64(readAheadPause), "readAheadMax": readAheadMax, "lingerPause": int64(lingerPause),
		"spinTime": int64(spinTime), "yieldTime": int64(yieldTime), "spinLinks": spinLinks,
		"listenEvery": int64(listenEvery), "burstMessageMax": burstMessageMax, "burstBytesMax": burstBytesMax,
		"burstTime": int64(burstTime), "burstDelay": int64(burstDelay),
		"streakMin": streakMin, "streakMax": streakMax, "streakGap": int64(streakGap),
		"yieldsPerLook": yieldsPerLook, "moveInterval": int64(moveInterval), "moveMost": int64(moveMost),
		"stallTimeout": int64(stallTimeout), "closeTimeout": int64(closeTimeout),
	})
}

func TestThePageHasTheFieldsOfAHeader(t *testing.T) {
	section := pagetest.Section(t, pagetest.Page(t), "TCP")
	const text, body, context, sequence, total = 0x1122, 0x21222324, 0x31323334, 0x41424344, 0x5152535455565758
	b := header{kind: creditFrame, text: text, body: body, context: context, sequence: sequence, total: total}.append(nil)
	for name, want := range map[string]uint64{
		"kind": uint64(creditFrame), "text": text, "body": body, "context": context, "sequence": sequence, "total": total,
	} {
		_, row, _ := strings.Cut(section, " | `"+name+"` | ")
		before := strings.TrimSuffix(section, " | `"+name+"` | "+row)
		var first, last int
		at := before[strings.LastIndex(before, "\n| ")+len("\n| "):]
		if n, _ := fmt.Sscanf(at, "%d–%d", &first, &last); n == 1 {
			last = first
		}
		var p [8]byte
		copy(p[:], b[first:last+1])
		if got := binary.LittleEndian.Uint64(p[:]); got != want {
			t.Errorf("bytes %s of a header are %#x, not the %s, %#x", at, got, name, want)
		}
	}
}

func TestThePageHasTheKindsOfFrames(t *testing.T) {
	section := pagetest.Section(t, pagetest.Page(t), "TCP")
	for i, name := range []string{
		"messageFrame", "chunkFrame", "probeFrame", "leftFrame", "abortFrame", "mismatchFrame",
		"eagerFrame", "rtsFrame", "withdrawFrame", "ctsFrame", "fragmentFrame", "creditFrame",
		"holdFrame", "resumeFrame", "revocationFrame",
	} {
		if want := fmt.Sprintf("\n| %d | `%s` | ", i+1, name); !strings.Contains(section, want) {
			t.Errorf("the page has not the row %s", want)
		}
	}
	kinds := []frameKind{
		messageFrame, chunkFrame, probeFrame, leftFrame, abortFrame, mismatchFrame,
		eagerFrame, rtsFrame, withdrawFrame, ctsFrame, fragmentFrame, creditFrame,
		holdFrame, resumeFrame, revocationFrame,
	}
	if want := []frameKind{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("the kinds are numbered %d", kinds)
	}
	if want := "1 `accepted`, 2 `crossed`, 3 `hasAborted`, 4 `hasLeft` or 5 `refused`"; !strings.Contains(section, want) ||
		accepted != 1 || crossed != 2 || hasAborted != 3 || hasLeft != 4 || refused != 5 {
		t.Errorf("the replies are not %s", want)
	}
}
