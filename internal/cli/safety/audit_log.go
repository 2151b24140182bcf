package safety

import (
	"context"
	"iter"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/sys/audit"
)

type auditData struct {
	Entries contract.Rows[contract.Foreign[audit.Entry]] `json:"entries"`
}

func auditLog() *contract.Command {
	return &contract.Command{
		Path: "audit-log", Summary: "show the record of calls, the oldest first", Class: contract.Listing,
		Danger: contract.Safe, Version: "1.0.0",
		Detail: "Every call of a command is recorded, failures too, but for help, version, completion and manifest. " +
			"Calls without a command,\nand of one that does not exist, are not. Secrets are removed before " +
			"anything is written. Arguments came from callers: they\nare marked as foreign.",
		LooseConfig: true, Scopes: []string{}, Output: contract.TypeOf[auditData](), Volatile: []string{"entries"},
		List: &contract.List{
			Key: "entries", ID: "request_id", Order: "timestamp",
			Columns: []string{"timestamp", "command", "exit_code", "error_code", "duration_ms"},
		},
		Params: []contract.Param{
			{
				Name: "since", Kind: contract.Text, MaxLen: 40,
				Help: "a time such as 2026-01-31T12:00:00Z, or a span back from now such as 24h",
			},
			{Name: "command", Kind: contract.ID, Help: "only this command, or those below it"},
			{Name: "last", Kind: contract.Int, Max: 100000, Help: "only so many of the newest"},
			{Name: "trace-id", Kind: contract.Name, MaxLen: 128, Help: "only calls of this trace"},
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "the entries are listed"}},
		Examples: []contract.Example{
			{Description: "The last ten calls", Command: "omniagent audit-log --last 10"},
			{Description: "Calls of the last hour", Command: "omniagent audit-log --since 1h"},
			{
				Description: "All changes of the configuration, a JSON object a line",
				Command:     "omniagent audit-log --command config.set --limit 0 --output jsonl",
			},
		},
		Validate: flags.CheckSince("24h"),
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			from, _ := flags.ParseSince(c.String("since"))
			skipped := 0
			entries := c.AuditLog().Entries(audit.Filter{
				Since: from, Command: c.String("command"), TraceID: c.String("trace-id"), Skipped: &skipped,
			})
			var rows iter.Seq[contract.Foreign[audit.Entry]] = func(yield func(contract.Foreign[audit.Entry]) bool) {
				for entry, err := range entries {
					if ctx.Err() != nil {
						return
					}
					if err != nil {
						c.Warn("AUDIT_UNREADABLE", "%v", err)
						continue
					}
					if !yield(contract.Foreign[audit.Entry]{Value: entry}) {
						return
					}
				}
				if skipped > 0 {
					c.Warn("AUDIT_LINES_SKIPPED", "%d lines of the log are not entries", skipped)
				}
			}
			if n := c.Int("last"); n > 0 {
				rows = newest(rows, n)
			}
			return contract.Result{Data: auditData{contract.Rows[contract.Foreign[audit.Entry]]{Seq: rows}}}, nil
		},
	}
}

// newest returns the last n values of a sequence, in their order.
func newest[T any](seq iter.Seq[T], n int) iter.Seq[T] {
	return func(yield func(T) bool) {
		last := []T{}
		for v := range seq {
			if last = append(last, v); len(last) > 2*n { // copy only every n values, so that it costs little
				last = append(last[:0:0], last[len(last)-n:]...)
			}
		}
		for _, v := range last[max(0, len(last)-n):] {
			if !yield(v) {
				return
			}
		}
	}
}
