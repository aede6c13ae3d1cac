package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/chorale-go/chorale/internal/netns"
)

// checkNamespaces returns why this machine has no network namespaces for jobs, or nil.
func checkNamespaces() error {
	_, stop, err := netns.Make()
	if err == nil {
		stop()
	}
	return err
}

func enterNamespace(process string) []string { return netns.Enter(process) }

// onNamespaces runs the ranks as processes of two network namespaces, and the launcher as one of
// the first.
func (p *program) onNamespaces(ctx context.Context, dir string, out, errs io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	hosts, stop, err := netns.Make()
	if err != nil {
		return err
	}
	defer stop()
	words := append(append(netns.Enter(hosts[0].Process), self), append(p.args("launcher"), hosts[0].Process, hosts[1].Process)...)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = append(os.Environ(), p.mark(), "TMPDIR="+dir)
	c.Stdout, c.Stderr, c.WaitDelay = out, errs, 10*time.Second
	if err := c.Run(); err != nil {
		return fmt.Errorf("the launcher: %w", err)
	}
	return nil
}

// cutOff has the other host lost, in a process of the first: from now on no packet goes over the
// cable between them, or all processes of the other one are killed.
func cutOff(cable bool) error {
	if cable {
		return exec.Command("ip", "link", "set", "eth0", "down").Run()
	}
	here, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	var there []int
	for _, pid := range processesWith(new(program).mark()) {
		if at, err := os.Readlink("/proc/" + pid + "/ns/net"); err == nil && at != here {
			n, _ := strconv.Atoi(pid)
			there = append(there, n)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} { // all at once: none sees another one die
		for _, pid := range there {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
	return nil
}
