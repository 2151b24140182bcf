package command

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

// dontAsk is the mode prompt with every question denied.
const dontAsk = "dont-ask"

// sandboxParam is the flag that removes walls.
func sandboxParam() contract.Param {
	return contract.Param{
		Name: "sandbox", Kind: contract.Enum, Enum: []string{string(setting.WorkspaceWrite), string(setting.Off)},
		Also: setting.SandboxElsewhere(),
		Help: "what commands can change; off: no walls",
	}
}

// addDirParam is --add-dir.
func addDirParam() contract.Param {
	return contract.Param{Name: "add-dir", Kind: contract.File, Repeat: true, Help: "a further directory to work in"}
}

// addedDirs returns what --add-dir names, absolute.
func addedDirs(c *contract.Call) (dirs []string) {
	for _, dir := range c.Strings("add-dir") {
		dirs = append(dirs, c.Abs(dir))
	}
	return dirs
}

// hostParams returns the flags of every command that runs an agent for another side: permissions and time limits. more
// are further values of --permission-mode.
func hostParams(more ...string) []contract.Param {
	return append(approvalParams(more...),
		timeoutParam("time limit of a turn"),
		contract.Param{
			Name: "connect-timeout", Kind: contract.Duration, Default: "60s",
			Help: "until an agent prints something; native: native.first_byte",
		},
		undoParam(),
	)
}

func approvalParam() contract.Param {
	return contract.Param{
		Name: "approval", Kind: contract.Enum, Enum: approvalWords(), Also: setting.Elsewhere(),
		Help: "what runs without asking",
	}
}

// approvalParams returns the flags that say what runs unasked, with more words for --permission-mode.
func approvalParams(more ...string) []contract.Param {
	return []contract.Param{
		approvalParam(),
		{
			Name: "permission-mode", Kind: contract.Enum, Enum: append(hostWords(), more...),
			Also: setting.Elsewhere(), Help: "the same",
		},
		{Name: "auto-edit", Kind: contract.Bool, Help: "as --approval auto-edit"},
		{Name: "yolo", Kind: contract.Bool, Help: "as --approval yolo"},
		{Name: "read-only", Kind: contract.Bool, Help: "as --approval plan"},
	}
}

func approvalWords() []string { return text.Words(setting.Approvals()) }

// hostWords returns the values of --permission-mode: the approvals, and two words of hosts.
func hostWords() []string { return append(approvalWords(), "auto", "interactive") }

// meaning returns the approval for a word. An unknown word means default.
func meaning(word string) setting.Approval {
	if word == dontAsk {
		return setting.Prompt
	}
	if a, ok := setting.ParseApproval(word); ok {
		return a
	}
	return setting.Default
}

// approvalOf returns what the flags allow without a question, and the flag that says so, or "". Two flags that
// contradict each other are refused.
func approvalOf(c *contract.Call) (approval setting.Approval, flag string, err error) {
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

// timeoutParam returns the flag of commands that keep a clock of their own.
func timeoutParam(what string) contract.Param {
	return contract.Param{
		Name: "timeout", Kind: contract.Duration, Help: what + "; default: timeout, or none",
	}
}

// turnOf returns the limit that timeoutParam declares. The turns of a run have none: the run has.
func turnOf(c *contract.Call) time.Duration {
	if c.Command.Clock != nil {
		return 0
	}
	return clockOf(c, "timeout", "timeout")
}

// clocks returns the time limits of a conversation. For the native agent, the limit to the first sign of life is that
// of its model API.
func clocks(c *contract.Call) (turn, connect time.Duration) {
	return turnOf(c), c.Duration("connect-timeout")
}

// firstByte returns how long a model API may take to begin its answer.
func firstByte(c *contract.Call) time.Duration {
	switch limit := c.Duration("connect-timeout"); {
	case c.Given("connect-timeout") && limit == 0: // no limit; to the client zero means its default
		return math.MaxInt64
	case c.Given("connect-timeout"):
		return limit
	}
	return c.Config.Duration("native.first_byte")
}

// proxyOf returns the proxy to the model API that the flags name; nil: that of the environment.
func proxyOf(c *contract.Call) model.Proxy {
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

// retriesOf returns how requests to the model API are repeated, as far as the flags say.
func retriesOf(c *contract.Call) *model.RetryOptions {
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

// modelAPI returns the limits of the native agent's model API: the default of native.first_byte for silence, and that
// of wire for connecting.
func modelAPI() *contract.Network {
	return &contract.Network{Timeout: 5 * time.Minute, Connect: 15 * time.Second}
}

const undoKey = "undo.snapshots"

// undoParam is the flag of every command that runs an agent.
func undoParam() contract.Param {
	return contract.Param{
		Name: "undo", Kind: contract.Enum, Enum: []string{"on", "off"},
		Help: "keep what undo needs; default: undo.snapshots",
	}
}

func hereParam() contract.Param {
	return contract.Param{Name: "here", Kind: contract.Bool, Help: "only of this directory"}
}

func whereParam() contract.Param {
	return contract.Param{Name: "cwd", Short: "d", Kind: contract.File, Help: "whose settings count"}
}

// printedForm is --output of a command that prints in one form.
func printedForm(word string) contract.Param {
	return contract.Param{
		Name: "output", As: "output-format", Kind: contract.Enum, Enum: []string{word},
		Also: setting.Meaning("text:plain,stream-json:jsonl"),
		Help: "accepted; there is no other form",
	}
}

func rehearsalParams() []contract.Param {
	return []contract.Param{
		{
			Name: "rehearse", Kind: contract.Bool, Help: "on a scripted model: no key, no cost",
			Else: "; a file is named with --script FILE",
		},
		{Name: "script", Kind: contract.File, Help: "what it says; see help script"},
	}
}

func rehearsalRules() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base", "resume", "continue"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// runRehearsal are the rules of a run, which is a conversation of its own.
func runRehearsal() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// clockOf returns the limit of a flag, or else that of the first key that is set.
func clockOf(c *contract.Call, flag string, keys ...string) time.Duration {
	if c.Given(flag) {
		return c.Duration(flag)
	}
	return c.Config.Limit(keys...)
}

// checkSince checks the flag --since. span is an example of what it takes.
func checkSince(span string) func(*contract.Call) []fault.Problem {
	return func(c *contract.Call) []fault.Problem {
		if _, err := since(c.String("since")); err == nil {
			return nil
		}
		return []fault.Problem{contract.Wrong("since", fault.ArgError, c.String("since"),
			"--since takes a time such as 2026-01-31T12:00:00Z or a span such as %s", span)}
	}
}

// since parses a time, or a duration before now.
func since(written string) (time.Time, error) {
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

// longestMessage limits a message from standard input.
const longestMessage = 64 << 20

func messageTooLong() error {
	return fault.New(fault.PromptTooLong, "the message on standard input has more than %d MiB", longestMessage>>20).
		Hint("Put the text into a file, and name the file in the message.")
}
