package contract

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Main runs the program as the process that it is, and returns the exit status.
func (p *Program) Main() int {
	if p.plainVersion() {
		return 0
	}
	host := Process()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// Caught and dropped, not ignored: writing to a closed pipe is then an error that we see, and children still get the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	words, _ := p.split(host.Args)
	if c, known := p.Find(strings.Join(words, " ")); !known || c.Class == Envelope {
		if g := guardStdout(); g != nil {
			host.Stdout, host.stray = g.real, g.collect
		}
	}
	return p.Run(context.Background(), host, signals)
}

// plainVersion answers the most frequent question of all before anything is set up.
func (p *Program) plainVersion() bool {
	if len(os.Args) != 2 || os.Args[1] != "--version" && os.Args[1] != "-V" {
		return false
	}
	_, err := os.Stdout.WriteString(p.Version + "\n")
	return err == nil
}

// strayLimit bounds what is kept of the writes of others to standard output.
const strayLimit = 64 << 10
