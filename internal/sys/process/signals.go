package process

import (
	"os"
	"os/signal"
	"syscall"
)

// endings are the signals that ask a program to end, and their names.
func endings() map[os.Signal]string {
	return map[os.Signal]string{
		syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT",
	}
}

// NotifyOfEnd relays to a channel the signals that ask us to end. One that was ignored when we began stays ignored, as
// nohup wants it, and a shell for a job in the background.
func NotifyOfEnd(to chan<- os.Signal) {
	for s := range endings() {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// SignalName returns the name of a signal that NotifyOfEnd relays.
func SignalName(s os.Signal) string { return endings()[s] }
