package gemini

import "golang.org/x/sys/unix"

// memory is that of the machine in MiB. Zero: not known.
func memory() int {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int(size >> 20)
}
