package process

import "os"

// numberSpace names the PID namespace in which the numbers of processes count for a process; "self": for us.
func numberSpace(pid string) string {
	name, _ := os.Readlink("/proc/" + pid + "/ns/pid")
	return name
}
