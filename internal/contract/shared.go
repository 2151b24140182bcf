package contract

import "slices"

// Flags that several commands have are declared here, once, with the commands that get them and the reason. Otherwise
// they are ordinary parameters: parsed, checked, documented and read like a command's own.

type sharedParam struct {
	Param
	on  func(*Command) bool
	why string // the requirement
}

func always(*Command) bool     { return true }
func changes(c *Command) bool  { return c.Danger != Safe }
func lists(c *Command) bool    { return c.List != nil }
func networks(c *Command) bool { return c.Network != nil && c.Class == Envelope }
func recurses(c *Command) bool { return c.Recursive }

// sharedParams are the flags that several commands have, each with its commands. Long because it is a table.
func sharedParams() []sharedParam {
	return []sharedParam{
		{Param{Name: "help", Short: "h", Kind: Bool, Help: "show how the command is used"}, always, "F-068"},
		{Param{
			Name: "output", Kind: Enum, Enum: []string{"json", "jsonl", "tsv", "plain", "id"},
			Help: "form of the result; json off a terminal",
		}, always, "O-001"},
		{Param{Name: "fields", Kind: Names, Help: "only these members of data or rows"}, always, "O-002"},
		{Param{Name: "stable-output", Kind: Bool, Help: "leave out what varies"}, always, "O-007"},
		{Param{Name: "unmask", Kind: Bool, Sensitive: true, Help: "show secrets as they are"}, always, "O-037"},
		{Param{Name: "no-injection-protection", Kind: Bool, Help: "do not mark foreign text"}, always, "O-023"},
		{Param{
			Name: "binary-mode", Kind: Enum, Enum: []string{"base64", "hex", "skip"}, Default: "base64",
			Help: "form of binary values",
		}, always, "F-017"},
		{
			Param{Name: "token-limit", Kind: Int, Max: 1 << 40, Help: "cut data to about so many tokens (4 bytes)"},
			always, "O-049",
		},
		{Param{Name: "token-offset", Kind: Int, Max: 1 << 40, Help: "skip about so many tokens"}, always, "O-049"},
		{Param{Name: "token-count", Kind: Bool, Help: "only count them"}, always, "O-049"},
		{Param{Name: "width", Kind: Int, Max: 10000, Help: "wrap text on stderr; 0 never"}, always, "F-056"},
		{Param{Name: "quiet", Short: "q", Kind: Bool, Help: "nothing on stderr"}, always, "O-008"},
		{Param{Name: "verbose", Short: "v", Kind: Bool, Help: "progress on stderr"}, always, "O-008"},
		{Param{Name: "debug", Kind: Bool, Help: "a trace on stderr, secrets removed"}, always, "O-008"},
		{Param{Name: "warnings-as-errors", Kind: Bool, Help: "exit 1 on warnings"}, always, "O-025"},
		{Param{Name: "validate-only", Kind: Bool, Help: "only check the arguments"}, always, "O-009"},
		{Param{Name: "schema", Kind: Bool, Help: "describe the command as data"}, always, "O-013"},
		{Param{Name: "output-schema", Kind: Bool, Help: "JSON Schema of the data"}, always, "O-013"},
		{Param{Name: "schema-version", Kind: Int, Help: "expected major version: 1"}, always, "O-014"},
		{Param{Name: "show-requirements", Kind: Bool, Help: "list what the command needs"}, always, "O-031"},
		{Param{Name: "timeout", Kind: Duration, Help: "limit, such as 90s; 0: none"}, always, "C-012"},
		{Param{Name: "cwd", Kind: File, Help: "where relative paths start"}, always, "O-017"},
		{Param{Name: "config", Kind: File, Help: "the only configuration file"}, always, "O-024"},
		{Param{Name: "no-config", Kind: Bool, Help: "read no configuration file"}, always, "O-016"},
		{Param{Name: "context", Kind: ID, Help: "configuration context"}, always, "O-024"},
		{Param{Name: "instance-id", Kind: ID, MaxLen: 64, Help: "keep state apart"}, always, "O-036"},
		{Param{Name: "session-id", Kind: ID, MaxLen: 64, Help: "name for temporary files"}, always, "F-032"},
		{Param{Name: "yes", Short: "y", Kind: Bool, Help: "agree to every question"}, always, "C-005"},
		{Param{Name: "non-interactive", Kind: Bool, Help: "never ask"}, always, "C-005"},
		{Param{Name: "no-update-check", Kind: Bool, Help: "accepted; there are no checks"}, always, "O-020"},

		{Param{Name: "limit", Kind: Int, Max: 1 << 40, Default: "20", Help: "rows at most; 0 for all"}, lists, "O-003"},
		{Param{Name: "cursor", Kind: Text, MaxLen: 512, Help: "go on where the last page ended"}, lists, "O-003"},
		{
			Param{Name: "stream", Kind: Bool, Help: "JSON rows as they come, a summary last"},
			func(c *Command) bool { return c.Streaming }, "O-004",
		},
		{
			Param{Name: "no-stream", Kind: Bool, Help: "one envelope at the end"},
			func(c *Command) bool { return c.Streaming }, "O-004",
		},
		{
			Param{Name: "dry-run", Kind: Bool, Help: "only show what would change"},
			func(c *Command) bool { return c.DryRun }, "C-004",
		},
		{Param{
			Name: "idempotency-key", Kind: ID, MaxLen: 128,
			Help: "do it once: the key again gives the first result",
		}, changes, "C-007"},
		{Param{Name: "raw-payload", Kind: JSON, MaxLen: 1 << 20, Help: "all arguments as JSON"}, changes, "O-032"},
		{
			Param{Name: "confirm-destructive", Kind: Bool, Help: "agree to lose what is destroyed"},
			func(c *Command) bool { return c.Danger == Destructive }, "O-021",
		},
		{
			Param{Name: "live", Kind: Bool, Help: "do it, not only show it"},
			func(c *Command) bool { return c.SafeDefault }, "O-048",
		},
		{
			Param{Name: "input-file", Kind: File, Help: "read this file, not stdin"},
			func(c *Command) bool { return c.Stdin != nil }, "O-039",
		},
		{
			Param{
				Name: "heartbeat-ms", Kind: Int, Max: 86400000, Default: "10000",
				Help: "a sign of life on stdout so often; 0 for none",
			},
			func(c *Command) bool { return c.LongRunning },
			"O-038",
		},
		{
			Param{
				Name: "heartbeat-interval", Kind: Int, Max: 86400,
				Help: "a sign of life on stderr every so many seconds",
			},
			func(c *Command) bool { return c.LongRunning },
			"O-012",
		},
		{
			Param{Name: "resume-from", Kind: ID, Help: "the step to begin with"},
			func(c *Command) bool { return c.Resumable }, "O-010",
		},
		{
			Param{Name: "connect-timeout", Kind: Duration, Default: "10s", Help: "time limit of a connection"},
			networks,
			"C-012",
		},
		{Param{Name: "proxy", Kind: URL, Help: "proxy to use instead of the environment's"}, networks, "O-019"},
		{Param{Name: "no-proxy", Kind: Bool, Help: "connect directly"}, networks, "O-019"},
		{
			Param{Name: "retries", Kind: Int, Max: 10, Default: "2", Help: "how often to repeat a failed request"},
			networks, "F-078",
		},
		{
			Param{Name: "retry-delay", Kind: Duration, Default: "500ms", Help: "first wait between them"},
			networks,
			"F-078",
		},
		{
			Param{Name: "max-depth", Kind: Int, Max: 10000, Default: "50", Help: "directories deep at most"},
			recurses,
			"O-040",
		},
		{Param{Name: "no-follow-symlinks", Kind: Bool, Help: "leave symbolic links alone"}, recurses, "O-040"},
		{
			Param{Name: "headless", Kind: Bool, Help: "open no browser"},
			func(c *Command) bool { return c.Auth != nil },
			"O-033",
		},
		{
			Param{Name: "token-env-var", Kind: ID, Help: "variable that holds the credential"},
			func(c *Command) bool { return c.Auth != nil }, "O-033",
		},
	}
}

// sharedUsed returns the shared flags that at least one command has.
func (p *Program) sharedUsed() []Param {
	var list []Param
	for _, s := range sharedParams() {
		if slices.ContainsFunc(p.Commands, s.on) {
			list = append(list, s.Param)
		}
	}
	return list
}

// sharedFor returns the shared flags of one command.
func sharedFor(c *Command) []Param {
	var list []Param
	for _, s := range sharedParams() {
		if s.on(c) && (c.Class == Envelope || s.Name == "help" || s.Name == "schema" || s.Name == "non-interactive" &&
			c.NeedsPerson) {
			p := s.Param
			p.Global = true
			if p.Name == "limit" && c.List.Limit > 0 {
				p.Default = itoa(c.List.Limit)
			}
			list = append(list, p)
		}
	}
	return list
}

// allParams returns the command's own parameters, secrets in their two forms, and the shared ones.
func (c *Command) allParams() []Param {
	var list []Param
	for _, p := range c.Params {
		list = append(list, p.expand()...)
	}
	return append(list, sharedFor(c)...)
}
