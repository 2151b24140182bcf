package safety

import (
	"context"

	"omniagent/internal/cli/contract"
	"omniagent/internal/sys/audit"
)

func auditLogVerify() *contract.Command {
	return &contract.Command{
		Path: "audit-log verify", Summary: "check that the audit log is as it was written",
		Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "Each line has a number and a hash that covers the line and the hash before it. The answer names the " +
			"file and line of each damage.\n" +
			"The hashes show damage. They do not show a log that the same user wrote anew as a whole.",
		LooseConfig: true, LongRunning: true, Scopes: []string{}, Output: contract.TypeOf[audit.Report](),
		Volatile: []string{"files", "entries", "before_chain", "first", "last", "head", "torn", "damage"},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "every line is as it was written"},
			{Code: contract.GeneralError, When: "it is damaged; damage[] names each line"},
			{Code: contract.PreconditionFailed, When: "another process holds the lock", Retryable: true},
			{Code: contract.PermissionDenied, When: "a file cannot be read"},
		},
		Examples: []contract.Example{{Description: "Check the audit log", Command: "omniagent audit-log verify"}},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			if c.AuditPath() == "" {
				return contract.Result{Data: audit.Report{}}, nil
			}
			report, err := c.AuditLog().Verify(ctx)
			if err != nil {
				return contract.Result{}, err
			}
			return contract.Result{Data: report}, report.Fault()
		},
	}
}
