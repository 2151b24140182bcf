// Package hermetic keeps what a test finds on its machine from changing its result.
package hermetic

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Signals makes the programs that a test starts get the signals that were ignored when the test began, as nohup ignores
// them and a shell with a job in the background: a program goes on ignoring what was ignored when it began. Call it
// first in TestMain. In the process itself these signals do nothing. Where the test's own binary plays another program,
// which has no flags of a test, it stays as it was started.
func Signals() {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "-test.") {
		return
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
