package gemini

import "golang.org/x/sys/unix"

// memory returns the machine's memory in MiB, or 0 if it is unknown.
func memory() int {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int(size >> 20)
}
