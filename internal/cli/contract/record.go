package contract

import (
	"cmp"
	"os"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/audit"
	"omniagent/internal/sys/redact"
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

// checkRecord warns that the call cannot be recorded, while the answer can still say so.
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
	entry := audit.Entry{
		Timestamp: c.started.UTC(), Command: c.name(), Args: c.masked(), ExitCode: status,
		DurationMS: time.Since(c.started).Milliseconds(), Effect: string(a.effect), Reversible: c.Command.Reversible,
	}
	if c.DryRun() && a.effect != "" {
		entry.Effect = string(a.effect.would())
	}
	if a.fault != nil {
		entry.ErrorCode = string(a.fault.Code)
	}
	if err := c.writeRecord(entry); err != nil {
		c.Debug("the call is not recorded: %v", fault.Of(err))
	}
}

// RecordAlso writes a line about a part of this call that needs a record of its own, before the call has ended. It
// fills in what all lines of a call have in common.
func (c *Call) RecordAlso(e audit.Entry) error {
	e.Timestamp, e.Command = time.Now().UTC(), cmp.Or(e.Command, c.name())
	return c.writeRecord(e)
}

func (c *Call) writeRecord(e audit.Entry) error {
	known := redact.Known(redact.Secrets(os.Environ())...)
	for i := range e.Args { // a message may quote a key
		e.Args[i] = known.String(e.Args[i])
	}
	e.RequestID, e.TraceID, e.Cwd, e.Danger = c.id, c.trace(), c.dir, string(c.Command.Danger)
	e.Operator, e.InstanceID, e.ToolVersion, e.PID = Operator(c.Host), c.instance, c.Program.Version, os.Getpid()
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
