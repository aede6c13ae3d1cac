package netns

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

const (
	Docker = "172.17.0.1" // of docker0, on both hosts
	Name   = "node1"      // of the first host, which has it as 127.0.1.1 in /etc/hosts
)

// A Host is a network namespace.
type Host struct {
	Address, IPv6 string // of eth0
	Process       string // the number of a process that is in the namespace
}

func hosts() [2]Host {
	return [2]Host{{Address: "10.77.0.1", IPv6: "fd77::1"}, {Address: "10.77.0.2", IPv6: "fd77::2"}}
}

// Make makes two hosts that are connected. Stop removes them; they end with this process, too.
func Make() (both [2]Host, stop func(), err error) {
	for _, name := range []string{"ip", "nsenter", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			return both, nil, fmt.Errorf("two hosts need the programs of iproute2 and util-linux: %w", err)
		}
	}
	both = hosts()
	var ends []func()
	stop = func() {
		for _, end := range ends {
			end()
		}
	}
	for i := range both {
		end, err := both[i].start()
		if err != nil {
			stop()
			return both, nil, fmt.Errorf("two hosts need root: %w", err)
		}
		ends = append(ends, end)
	}
	if err := connect(both); err != nil {
		stop()
		return both, nil, fmt.Errorf("two hosts cannot be connected: %w", err)
	}
	return both, stop, nil
}

// start starts a process in a new namespace, and returns what ends it.
func (h *Host) start() (end func(), err error) {
	c := exec.Command("cat")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	var in io.WriteCloser
	if in, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	h.Process = strconv.Itoa(c.Process.Pid)
	return func() {
		in.Close()
		c.Wait()
	}, nil
}

// connect makes the interfaces of both hosts.
func connect(both [2]Host) error {
	if out, err := exec.Command("ip", "link", "add", "eth0", "netns", both[0].Process, "type", "veth", "peer", "name", "eth0", "netns", both[1].Process).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for _, h := range both {
		for _, args := range [][]string{
			{"link", "set", "lo", "up"},
			{"address", "add", h.Address + "/24", "dev", "eth0"},
			{"address", "add", h.IPv6 + "/64", "dev", "eth0", "nodad"},
			{"link", "set", "eth0", "up"},
			{"link", "add", "docker0", "type", "bridge"},
			{"address", "add", Docker + "/16", "dev", "docker0"},
			{"link", "set", "docker0", "up"},
		} {
			if err := h.ip(args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Enter returns the first words of a command that runs the words after them in the host of a
// process.
func Enter(process string) []string {
	return []string{"nsenter", "--net=/proc/" + process + "/ns/net", "--"}
}

// Command returns a command that runs a program in the host.
func (h *Host) Command(name string, args ...string) *exec.Cmd {
	words := append(append(Enter(h.Process), name), args...)
	return exec.Command(words[0], words[1:]...)
}

func (h *Host) ip(args ...string) error {
	if out, err := h.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
