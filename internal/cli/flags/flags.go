// Package flags declares the flags that several groups of commands have, and reads their values from a call.
package flags

import (
	"math"
	"net/http"
	"net/url"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
)

// DontAsk is a value of --permission-mode: as prompt, but every question is denied.
const DontAsk = "dont-ask"

// Sandbox returns --sandbox, which can switch the walls off.
func Sandbox() contract.Param {
	return contract.Param{
		Name: "sandbox", Kind: contract.Enum, Enum: []string{string(setting.WorkspaceWrite), string(setting.Off)},
		Also: setting.SandboxElsewhere(),
		Help: "what commands can change; off: no walls",
	}
}

// AddDir returns --add-dir.
func AddDir() contract.Param {
	return contract.Param{Name: "add-dir", Kind: contract.File, Repeat: true, Help: "a further directory to work in"}
}

// AddedDirs returns the directories that --add-dir names, as absolute paths.
func AddedDirs(c *contract.Call) (dirs []string) {
	for _, dir := range c.Strings("add-dir") {
		dirs = append(dirs, c.Abs(dir))
	}
	return dirs
}

// Host returns the flags of every command that runs an agent for a person or another program: permissions, time limits
// and undo. more are further values of --permission-mode.
func Host(more ...string) []contract.Param {
	return append(Approvals(more...),
		Timeout("time limit of a turn"),
		contract.Param{
			Name: "connect-timeout", Kind: contract.Duration, Default: "60s",
			Help: "until an agent prints something; native: native.first_byte",
		},
		Undo(),
	)
}

// Approval returns --approval, which says what runs without a question.
func Approval() contract.Param {
	return contract.Param{
		Name: "approval", Kind: contract.Enum, Enum: approvalWords(), Also: setting.Elsewhere(),
		Help: "what runs without asking",
	}
}

// Approvals returns all flags that say what runs without a question. more are further values of --permission-mode.
func Approvals(more ...string) []contract.Param {
	return []contract.Param{
		Approval(),
		{
			Name: "permission-mode", Kind: contract.Enum, Enum: append(PermissionModes(), more...),
			Also: setting.Elsewhere(), Help: "the same",
		},
		{Name: "auto-edit", Kind: contract.Bool, Help: "as --approval auto-edit"},
		{Name: "yolo", Kind: contract.Bool, Help: "as --approval yolo"},
		{Name: "read-only", Kind: contract.Bool, Help: "as --approval plan"},
	}
}

func approvalWords() []string { return text.Words(setting.Approvals()) }

// PermissionModes returns the values of --permission-mode: the approvals, and two words of hosts.
func PermissionModes() []string { return append(approvalWords(), "auto", "interactive") }

// meaning returns the approval for a word. An unknown word means default.
func meaning(word string) setting.Approval {
	if word == DontAsk {
		return setting.Prompt
	}
	if a, ok := setting.ParseApproval(word); ok {
		return a
	}
	return setting.Default
}

// ApprovalOf returns what may run without a question, and the flag that says so, or "" if none is given. It refuses
// flags that contradict each other.
func ApprovalOf(c *contract.Call) (approval setting.Approval, flag string, err error) {
	for _, f := range []struct {
		name string
		is   setting.Approval
	}{
		{name: "approval"},
		{name: "permission-mode"},
		{"auto-edit", setting.AutoEdit},
		{"yolo", setting.Yolo},
		{"read-only", setting.Plan},
	} {
		written := "--" + f.name
		switch {
		case !c.Given(f.name) || f.is != "" && !c.Bool(f.name):
			continue
		case f.is == "":
			written += " " + c.String(f.name)
			f.is = meaning(c.String(f.name))
		}
		if flag != "" && f.is != approval {
			return "", "", fault.New(fault.ArgError, "%s and %s cannot be combined", flag, written).
				Hint("leave one of them out")
		}
		if flag == "" {
			approval, flag = f.is, written
		}
	}
	return approval, flag, nil
}

// Timeout returns --timeout of commands that enforce the limit themselves. what says whose limit it is.
func Timeout(what string) contract.Param {
	return contract.Param{
		Name: "timeout", Kind: contract.Duration, Help: what + "; default: timeout, or none",
	}
}

// TurnOf returns the time limit of a turn. The turns of a run have none, because the limit is that of the whole run.
func TurnOf(c *contract.Call) time.Duration {
	if c.Command.Clock != nil {
		return 0
	}
	return ClockOf(c, "timeout", "timeout")
}

// Clocks returns the time limits of a conversation: of a turn, and until an agent prints something. FirstByte has the
// second one for the native agent.
func Clocks(c *contract.Call) (turn, connect time.Duration) {
	return TurnOf(c), c.Duration("connect-timeout")
}

// FirstByte returns how long a model API may take to begin its answer.
func FirstByte(c *contract.Call) time.Duration {
	switch limit := c.Duration("connect-timeout"); {
	case c.Given("connect-timeout") && limit == 0: // no limit; to the client zero means its default
		return math.MaxInt64
	case c.Given("connect-timeout"):
		return limit
	}
	return c.Config.Duration("native.first_byte")
}

// ProxyOf returns the proxy to the model API that the flags name, or nil for that of the environment.
func ProxyOf(c *contract.Call) model.Proxy {
	switch {
	case c.Bool("no-proxy"):
		return http.ProxyURL(nil)
	case c.Given("proxy"):
		if at, err := url.Parse(c.String("proxy")); err == nil {
			return http.ProxyURL(at)
		}
	}
	return nil
}

// RetriesOf returns what the flags say about repeating requests to the model API, or nil if they say nothing.
func RetriesOf(c *contract.Call) *model.RetryOptions {
	var o model.RetryOptions
	if c.Given("retries") {
		o.Tries = 1 + c.Int("retries")
	}
	if c.Given("retry-delay") {
		o.First = c.Duration("retry-delay")
	}
	if o == (model.RetryOptions{}) {
		return nil
	}
	return &o
}

// ModelAPI returns the limits of the connections to the native agent's model API: the default of native.first_byte, and
// the default limit for connecting.
func ModelAPI() *contract.Network {
	return &contract.Network{Timeout: 5 * time.Minute, Connect: 15 * time.Second}
}

// Undo returns --undo, which every command that runs an agent has.
func Undo() contract.Param {
	return contract.Param{
		Name: "undo", Kind: contract.Enum, Enum: []string{"on", "off"},
		Help: "keep what undo needs; default: undo.snapshots",
	}
}

// Here returns --here, which leaves out what belongs to other directories.
func Here() contract.Param {
	return contract.Param{Name: "here", Kind: contract.Bool, Help: "only of this directory"}
}

// Where returns --cwd for a command that only prints, which has no shared flags.
func Where() contract.Param {
	return contract.Param{Name: "cwd", Short: "d", Kind: contract.File, Help: "whose settings count"}
}

// PrintedForm returns --output for a command that prints in one form only. word is that form.
func PrintedForm(word string) contract.Param {
	return contract.Param{
		Name: "output", As: "output-format", Kind: contract.Enum, Enum: []string{word},
		Also: setting.Meaning("text:plain,stream-json:jsonl"),
		Help: "accepted; there is no other form",
	}
}

// Rehearsal returns the flags for a conversation with a scripted model.
func Rehearsal() []contract.Param {
	return []contract.Param{
		{
			Name: "rehearse", Kind: contract.Bool, Help: "on a scripted model: no key, no cost",
			BoolHint: "; a file is named with --script FILE",
		},
		{Name: "script", Kind: contract.File, Help: "what it says; see help script"},
	}
}

// RehearsalRules returns the rules for the flags of Rehearsal in a conversation.
func RehearsalRules() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base", "resume", "continue"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// RunRehearsalRules returns the rules for the flags of Rehearsal in a run, which has no flags that continue a
// conversation.
func RunRehearsalRules() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// ClockOf returns the limit that a flag sets, or the limit of the first of the keys that is set.
func ClockOf(c *contract.Call, flag string, keys ...string) time.Duration {
	if c.Given(flag) {
		return c.Duration(flag)
	}
	return c.Config.Limit(keys...)
}

// CheckSince returns the function that validates --since. span is an example for the message.
func CheckSince(span string) func(*contract.Call) []fault.Problem {
	return func(c *contract.Call) []fault.Problem {
		if _, err := ParseSince(c.String("since")); err == nil {
			return nil
		}
		return []fault.Problem{contract.Wrong("since", fault.ArgError, c.String("since"),
			"--since takes a time such as 2026-01-31T12:00:00Z or a span such as %s", span)}
	}
}

// ParseSince parses a time in UTC, or a duration before now. The empty string is the zero time.
func ParseSince(written string) (time.Time, error) {
	if written == "" {
		return time.Time{}, nil
	}
	if span, ok := text.Duration(written); ok {
		return time.Now().Add(-span), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, written, time.UTC); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.New(fault.ArgError, "%q is not a time", written)
}

// LongestMessage limits a message from standard input.
const LongestMessage = 64 << 20

// MessageTooLong is the fault of a message longer than LongestMessage.
func MessageTooLong() error {
	return fault.New(fault.PromptTooLong, "the message on standard input has more than %d MiB", LongestMessage>>20).
		Hint("Put the text into a file, and name the file in the message.")
}
