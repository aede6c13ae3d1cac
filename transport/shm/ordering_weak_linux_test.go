package shm

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/chorale-go/chorale/internal/pagetest"
)

// TestFences reads what the compiler makes for arm64 of the functions of
// ordering_weak.go. No processor that reorders as arm64 may is needed for that, nor would
// one show it in each run.
func TestFences(t *testing.T) {
	functions := map[string]string{}
	for _, f := range parseListing(compile(t, "arm64"), lineRanges{}) {
		var ops []string
		for _, c := range f.code {
			ops = append(ops, c.op)
		}
		functions[f.name[strings.LastIndexByte(f.name, '/')+1:]] = strings.Join(ops, " ")
	}
	const addition = `LDADDALW|STLXRW` // with LSE or without, whichever the compiler puts first
	for name, want := range map[string]string{
		"shm.storeRelease":           `\bSTLRW\b`,
		"shm.storeRelease64":         `\bSTLR\b`,
		"shm.storeFenced":            `\bSTLR\b.*\bLDAR\b`,
		"shm.invalidate":             `\bSTLRW\b.*\bLDARW\b`,
		"shm.loadFence":              addition,
		"shm.(*rankState).terminate": `\bSTLR\b.*\bLDAR\b`,
		// In those that read memory that is not theirs, the fence is before the load behind
		// it.
		"shm.(*rankState).unchanged": `(` + addition + `).*\bLDAR\b`,
		"shm.(*rankState).ownedBy":   `(` + addition + `).*\bLDARW\b`,
		"shm.(*rankState).call":      `\bCALL\b.*(` + addition + `).*\bLDARW\b`,
	} {
		switch ops, compiled := functions[name]; {
		case !compiled:
			t.Errorf("the compiler has made no %s", name)
		case !regexp.MustCompile(want).MatchString(ops):
			t.Errorf("%s is %s: want %s", name, ops, want)
		}
	}
}

// The page on the order of accesses has all that ranks share, and all that is atomic.
func TestThePageOnOrderHasEveryWord(t *testing.T) {
	want := pagetest.AtomicFields(t, ".")
	for _, shared := range []any{
		header{}, ring{}, cell{}, pairPayload{}, multicastPayload{}, rankState{}, cmaProbe{}, callText{}, stallRecord{}, terminationRecord{}, revocationLog{}, reasonText{},
	} {
		s := reflect.TypeOf(shared)
		for i := range s.NumField() {
			if f := s.Field(i); f.Name != "_" && f.Type.PkgPath() != "sync/atomic" {
				want = append(want, s.Name()+"."+f.Name)
			}
		}
	}
	pagetest.CheckWords(t, "memory-ordering.md", "Shared memory", want)
}
