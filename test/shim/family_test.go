//go:build unix

package shim

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// family is an agent with descendants that do not want to end: one in its group, one in a session of its own, one whose
// parent is gone. They write nothing and hold nothing of the test's.
func family(role string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	if role == "leaf" {
		time.Sleep(time.Hour)
		return 0
	}
	start := func(role string, attr *syscall.SysProcAttr) {
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{"codex"}
		cmd.Env = append(os.Environ(), stubVariable+`={"family":"`+role+`"}`)
		cmd.SysProcAttr = attr
		_ = cmd.Start()
	}
	start("leaf", nil)
	start("leaf", &syscall.SysProcAttr{Setsid: true})
	if role == "parent" {
		start("orphans", &syscall.SysProcAttr{Setsid: true})
		_, _ = os.Stdout.WriteString("up\n")
		time.Sleep(time.Hour)
	}
	return 0
}
