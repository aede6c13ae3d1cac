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
}

func thisMachine() machine {
	return machine{
		CPU:     field("/proc/cpuinfo", "model name"),
		Cores:   runtime.NumCPU(),
		Kernel:  contents("/proc/sys/kernel/osrelease"),
		Go:      strings.TrimPrefix(runtime.Version(), "go"),
		OpenMPI: version(openMPI.launcher, "--version"),
		MPICH:   version(mpich.launcher, "--version"),
	}
}

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
