package confine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// UsageOf measures a process.
func UsageOf(pid int) (Usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		switch string(name) {
		case "VmRSS", "VmSwap":
			u.Memory += number(value) << 10
		case "Threads":
			u.Threads = number(value)
		}
	}
	return u, nil
}

// number is the first word of a value, 0 where that is none.
func number(value []byte) int64 {
	word, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
	n, _ := strconv.ParseInt(string(word), 10, 64)
	return n
}
