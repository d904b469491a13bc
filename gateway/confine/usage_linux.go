package confine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
)

// UsageOf measures a process.
func UsageOf(pid int) (Usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var n int64
		name, value, _ := strings.Cut(lines.Text(), ":")
		if _, err := fmt.Sscan(value, &n); err != nil {
			continue
		}
		switch name {
		case "VmRSS", "VmSwap":
			u.Memory += n << 10
		case "Threads":
			u.Threads = n
		}
	}
	return u, nil
}
