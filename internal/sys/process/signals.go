package process

import (
	"os"
	"os/signal"
	"syscall"
)

// endings returns the signals that ask a program to end, with their names.
func endings() map[os.Signal]string {
	return map[os.Signal]string{
		syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT",
	}
}

// NotifyOfEnd relays to a channel the signals that ask us to end. A signal that was ignored at the start stays ignored,
// as with nohup, and for a background job of a shell.
func NotifyOfEnd(to chan<- os.Signal) {
	for s := range endings() {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// SignalName returns the name of a signal that NotifyOfEnd relays.
func SignalName(s os.Signal) string { return endings()[s] }
