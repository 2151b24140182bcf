package process

import (
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// started is what the role "starter" is told: a Plan with our own streams.
type started struct {
	Argv     []string
	Env      []string
	Terminal bool
	Detach   bool
	Grace    time.Duration
	Report   string // where the Ending goes
	Apart    bool
	Bound    bool
	Mark     string // of the starter itself
	Leaves   []string
	Register string // the file; empty: none
}

// starter is a program that does nothing but run a child, as the real one does.
func starter(args []string) error {
	var s started
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, roleVariable+"=") })
	p := Plan{
		Argv: s.Argv, Path: s.Argv[0], Env: append(env, s.Env...), Detach: s.Detach, Grace: s.Grace,
		OwnPIDs: s.Apart || os.Getenv(apartVariable) != "", Bound: s.Bound, RemoveIfEmpty: s.Leaves,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	if s.Register != "" {
		p.Register = NewRegister(s.Register)
	}
	if s.Terminal {
		p.Terminal = os.Stdin
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	c, err := Start(p)
	if err != nil {
		return err
	}
	go func() {
		for s := range signals {
			c.End(s)
		}
	}()
	e := c.Wait()
	if s.Report != "" {
		text, _ := json.Marshal(e)
		if err := os.WriteFile(s.Report+"~", text, 0o600); err != nil {
			return err
		}
		if err := os.Rename(s.Report+"~", s.Report); err != nil {
			return err
		}
	}
	if e.Signal != "" {
		os.Exit(128)
	}
	os.Exit(e.ExitCode)
	return nil
}
