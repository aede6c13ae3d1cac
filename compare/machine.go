package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A machine describes the hardware and software of a measurement.
type machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Kernel  string `json:"kernel"`
	Go      string `json:"go"`
	OpenMPI string `json:"openMPI"`
	MPICH   string `json:"mpich"`

	HugePages  string `json:"hugePages,omitempty"`         // when the kernel makes them: always, madvise or never
	Congestion string `json:"congestionControl,omitempty"` // of sockets that do not ask for one
}

func thisMachine() machine {
	return machine{
		CPU:     field("/proc/cpuinfo", "model name"),
		Cores:   runtime.NumCPU(),
		Kernel:  contents("/proc/sys/kernel/osrelease"),
		Go:      strings.TrimPrefix(runtime.Version(), "go"),
		OpenMPI: version(openMPI.launcher, "--version"),
		MPICH:   version(mpich.launcher, "--version"),

		HugePages:  bracketed(contents("/sys/kernel/mm/transparent_hugepage/enabled")),
		Congestion: systemCongestion(),
	}
}

// systemCongestion returns the congestion control of sockets that do not ask for one.
func systemCongestion() string { return contents("/proc/sys/net/ipv4/tcp_congestion_control") }

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores; Linux %s, Go %s, Open MPI %s, MPICH %s", m.CPU, m.Cores, m.Kernel, m.Go, m.OpenMPI, m.MPICH)
}

const unknown = "unknown"

// contents returns the text of a file, or unknown.
func contents(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(text))
}

// bracketed returns the choice in a list, as in "always [madvise] never".
func bracketed(list string) string {
	_, rest, _ := strings.Cut(list, "[")
	choice, _, ok := strings.Cut(rest, "]")
	if !ok {
		return unknown
	}
	return choice
}

// field returns the value of a line "name: value" in a file.
func field(file, name string) string {
	for line := range strings.Lines(contents(file)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

// version returns the first word of a program's output that begins with a digit.
func version(program, flag string) string {
	out, _ := exec.Command(program, flag).Output()
	for word := range strings.FieldsSeq(string(out)) {
		if word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return unknown
}
