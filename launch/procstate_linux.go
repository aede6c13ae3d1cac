package launch

import (
	"bytes"
	"os"
	"strconv"
)

// processState returns the state of a process, as ps shows it: T of one that is stopped;
// 0 if it is not known.
func processState(pid int) byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// Behind the name, which is in parentheses and may have any bytes in it.
	i := bytes.LastIndex(stat, []byte(") "))
	if i < 0 || i+2 >= len(stat) {
		return 0
	}
	return stat[i+2]
}
