package process

import "os"

// numberSpace names the PID namespace in which our numbers of processes count.
func numberSpace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
