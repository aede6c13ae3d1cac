package command

import "os"

var signals = map[string]os.Signal{"KILL": os.Kill}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err == nil {
		p.Release()
	}
	return err == nil
}
