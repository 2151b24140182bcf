package contract

import (
	"cmp"
	"os"
	"time"

	"omniagent/internal/audit"
	"omniagent/internal/fault"
	"omniagent/internal/redact"
	"omniagent/internal/text"
)

// Every call writes one line to the audit log, failures too, except help, the version and similar calls without
// effects.

// AuditPath returns the file that records this call, or "" without a home directory.
func (c *Call) AuditPath() string {
	if set := c.Config.String("audit.path"); set != "" {
		return c.Abs(set)
	}
	return inDir(c.Paths.Data, "audit.jsonl")
}

// AuditLog returns the log of this instance.
func (c *Call) AuditLog() *audit.Log {
	return audit.Open(audit.Options{
		Path: c.AuditPath(), Home: c.Host.Home(), MaxBytes: c.Config.Int("audit.max_bytes"),
		Keep:   int(c.Config.Int("audit.keep")),
		MaxAge: time.Duration(c.Config.Int("audit.max_age_days")) * 24 * time.Hour,
	})
}

// checkRecord finds out early, while the answer can still say so, that the call cannot be recorded.
func (c *Call) checkRecord() {
	if c.Command.Quiet {
		return
	}
	if c.Paths == (Paths{}) { // the arguments were wrong before the places were known
		c.Paths = c.Host.paths(c.Program.Name, c.instance)
	}
	if c.AuditPath() == "" {
		c.Warn("AUDIT_OFF", "there is no home directory, so this call is not recorded")
	} else if err := c.AuditLog().Check(); err != nil {
		c.Warn("AUDIT_OFF", "this call is not recorded: %v", err)
	}
}

func (c *Call) record(a answer, status int) {
	if c.Command.Quiet || c.AuditPath() == "" {
		return
	}
	known, args := redact.Known(redact.Secrets(os.Environ())...), c.masked()
	for i := range args { // a message may quote a key
		args[i] = known.String(args[i])
	}
	entry := audit.Entry{
		Timestamp: c.started.UTC(), RequestID: c.id, TraceID: c.trace(), Command: c.name(), Args: args, Cwd: c.dir,
		ExitCode:   status,
		DurationMS: time.Since(c.started).Milliseconds(), Danger: string(c.Command.Danger), Effect: string(a.effect),
		Reversible: c.Command.Reversible,
		Operator:   Operator(c.Host), InstanceID: c.instance, ToolVersion: c.Program.Version, PID: os.Getpid(),
	}
	if c.DryRun() && a.effect != "" {
		entry.Effect = string(a.effect.would())
	}
	if a.fault != nil {
		entry.ErrorCode = string(a.fault.Code)
	}
	if err := c.AuditLog().Write(entry); err != nil {
		c.Debug("the call is not recorded: %v", fault.Of(err))
	}
}

// RecordAlso writes a line about a part of this call that has to be recorded by itself, before the call has ended. It
// fills in what all lines of a call have in common.
func (c *Call) RecordAlso(e audit.Entry) error {
	known := redact.Known(redact.Secrets(os.Environ())...)
	for i := range e.Args {
		e.Args[i] = known.String(e.Args[i])
	}
	e.Timestamp, e.RequestID, e.TraceID, e.Cwd = time.Now().UTC(), c.id, c.trace(), c.dir
	e.Danger, e.Operator, e.InstanceID, e.ToolVersion, e.PID = string(c.Command.Danger), Operator(c.Host), c.instance,
		c.Program.Version, os.Getpid()
	e.Command = cmp.Or(e.Command, c.name())
	return c.AuditLog().Write(e)
}

// Operator returns the user who calls.
func Operator(h Host) string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if v := h.env(name); v != "" {
			return text.Flat(v)
		}
	}
	return itoa(os.Getuid())
}
