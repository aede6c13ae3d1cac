package kernel

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chorale-go/chorale/internal/testenv"
)

// Go's assembler is given the codes of most instructions for arm64. Another assembler
// makes the same codes of the comments beside them.
func TestTheCodesOfInstructionsAreThoseOfTheirComments(t *testing.T) {
	const assembler = "aarch64-linux-gnu-as"
	if _, err := exec.LookPath(assembler); err != nil {
		testenv.Skip(t, "no assembler for arm64 is installed: %v", err)
	}
	source, err := os.ReadFile("kernel_arm64.s")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.+)$`).FindAllSubmatch(source, -1)
	if words := bytes.Count(source, []byte("WORD ")); words != len(lines) || words < 100 {
		t.Fatalf("%d of %d codes have a comment", len(lines), words)
	}
	var text bytes.Buffer
	for _, l := range lines {
		fmt.Fprintf(&text, "%s\n", l[2])
	}
	object := filepath.Join(t.TempDir(), "kernel.o")
	as := exec.Command(assembler, "-o", object, "-")
	as.Stdin = &text
	if out, err := as.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", as, err, out)
	}
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil || len(code) != 4*len(lines) {
		t.Fatalf("%d bytes of code for %d instructions: %v", len(code), len(lines), err)
	}
	for i, l := range lines {
		if got := fmt.Sprintf("%08x", binary.LittleEndian.Uint32(code[4*i:])); got != string(l[1]) {
			t.Errorf("%s is 0x%s, not 0x%s", l[2], got, l[1])
		}
	}
}
