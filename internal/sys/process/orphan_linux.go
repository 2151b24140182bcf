package process

import "os"

// numberSpace returns the PID namespace of a process; "self" is this one.
func numberSpace(pid string) string {
	name, _ := os.Readlink("/proc/" + pid + "/ns/pid")
	return name
}
