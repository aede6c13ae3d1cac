package shm

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/transport"
)

func TestThePageHasTheNumbersOfTheCode(t *testing.T) {
	l := layoutOf(2)
	pagetest.CheckNumbers(t, "Shared memory", map[string]int64{
		"version": version, "lineLen": lineLen, "rankStateLen": rankStateLen, "ranksMax": ranksMax,
		"depth": int64(l.depth), "buffers": int64(l.buffers), "stagingLen": int64(l.stagingLen),
		"stagingLenMin": stagingLenMin, "stagingTotalMax": stagingTotalMax, "stagingReserved": stagingReserved,
		"terminationMax": terminationMax, "callTextsMax": callTextsMax, "callTextMax": callTextMax, "stallsMax": stallsMax,
		"revocationsMax": int64(revocationsMax(1)), "reasonsMax": reasonsMax,
		"inlineMax": inlineMax, "rtsTypeMax": rtsTypeMax, "rendezvousMax": rendezvousMax, "admittedMax": admittedMax, "UnexpectedMax": transport.UnexpectedMax,
		"pairMax": pairMax, "pairDataMax": pairDataMax, "pairRanks": pairRanks, "multicastMax": multicastMax, "multicastMin": multicastMin, "multicastDepth": multicastDepth, "multicastRanks": multicastRanks,
		"rendezvousMin": rendezvousMin, "taggedRemoteMin": taggedRemoteMin, "rendezvousManyMin": rendezvousManyMin, "exchangedMin": exchangedMin,
		"chunkLen": chunkLen, "burst": burst, "pipelineDepth": pipelineDepth, "groupTimeout": int64(groupTimeout),
		"readMost": readMost, "bulkLen": bulkLen, "combinedLen": combinedLen, "hugePageLen": hugePageLen, "sentFirst": sentFirst,
		"fastMax": fastMax, "fastPolls": fastPolls, "peeks": peeks, "fastPollsOversubscribed": fastPollsOversubscribed, "fastYields": fastYields, "fastTaggedPolls": fastTaggedPolls,
		"arenaMax": arenaMax, "arenasMax": arenasMax, "sharedMin": sharedMin,
		"spinLimit": spinLimit, "spinLimitOversubscribed": spinLimitOversubscribed, "yieldTime": int64(yieldTime),
		"firstYields": firstYields, "repeatedWithin": repeatedWithin, "shortWaits": shortWaits,
		"stallTimeout": int64(stallTimeout), "livenessInterval": int64(livenessInterval),
	})
	if layoutOf(181).depth != l.depth || layoutOf(182).depth == l.depth || layoutOf(ranksMax).depth != 2 {
		t.Error("the page says from how many ranks on rings are shorter, and how short they are")
	}
	if layoutOf(32).stagingLen != l.stagingLen || layoutOf(33).stagingLen == l.stagingLen {
		t.Error("the page says from how many ranks on staging buffers are smaller")
	}
	if layoutOf(3).multicastLen() != 0 || layoutOf(4).multicastLen() == 0 || layoutOf(64).multicastLen() == 0 || layoutOf(65).multicastLen() != 0 {
		t.Error("the page says from how many ranks on there are multicast cells, and up to how many")
	}
}

func TestThePageHasTheFieldsOfACell(t *testing.T) {
	page := pagetest.Page(t)
	fields := func(v any, at uintptr) string {
		var all []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if f.Name != "_" {
				all = append(all, fmt.Sprintf("`%s` %d–%d", f.Name, at+f.Offset, at+f.Offset+f.Type.Size()-1))
			}
		}
		return strings.Join(all, " · ")
	}
	header, body := unsafe.Offsetof(cell{}.header), unsafe.Offsetof(cell{}.body)
	for what, want := range map[string]string{
		"`stepHeader`":       fields(stepHeader{}, header),
		"`taggedHeader`":     fields(taggedHeader{}, header),
		"`stagedPayload`":    fields(stagedPayload{}, body),
		"`remotePayload`":    fields(remotePayload{}, body),
		"`multicastPayload`": fields(multicastPayload{}, body),
		"`pairPayload`":      fields(pairPayload{}, body),
		"`rtsPayload`":       fields(rtsPayload{}, body),
		"`fragmentPayload`":  fields(fragmentPayload{}, body),
	} {
		if _, row, _ := strings.Cut(page, "\n| "+what+" | "); !strings.Contains(row[:strings.IndexByte(row+"\n", '\n')], " | "+want+" |") {
			t.Errorf("the row of %s has not %s", what, want)
		}
	}
	if want := strings.ReplaceAll(fields(cell{}, 0), " · ", ", "); !strings.Contains(page, want) {
		t.Errorf("the page has not %s", want)
	}
}

func TestThePageHasTheLayoutOfTheSegment(t *testing.T) {
	page := pagetest.Page(t)
	l := layoutOf(2)
	for what, n := range map[string]int{
		"header": headerLen, "rank states": l.ringsAt() - headerLen, "rings": l.pairsAt() - l.ringsAt(), "pair cells": l.multicastAt() - l.pairsAt(),
		"multicast cells": l.size * l.multicastLen(), "staging buffers": l.total() - l.stagingAt(),
	} {
		if _, row, _ := strings.Cut(page, "\n| "+what+" | "); !strings.HasSuffix(row[:strings.IndexByte(row+"\n", '\n')], fmt.Sprintf(" | %d |", n)) {
			t.Errorf("the row of the %s does not end with %d", what, n)
		}
	}
	for bit, name := range map[int]string{
		bits.TrailingZeros64(forTaken): "`forTaken`", bits.TrailingZeros64(forAny): "`forAny`",
	} {
		if want := fmt.Sprintf("\n| %d | %s: ", bit, name); !strings.Contains(page, want) {
			t.Errorf("the page has not the row %s", want)
		}
	}
	if want := fmt.Sprintf("\n| %d–63 | 1 + ", fromShift); !strings.Contains(page, want) {
		t.Errorf("the page has not the row %s", want)
	}
}
