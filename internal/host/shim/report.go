package shim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/workspace"
)

// Report is the content of the file of --report: the request, what was started, and how it ended.
type Report struct {
	Schema       int             `json:"schema"` // 1
	Tool         string          `json:"tool_version"`
	Agent        string          `json:"agent"`
	Version      *string         `json:"agent_version"`
	Path         string          `json:"path"`
	Argv         []string        `json:"argv"` // without the prompt; secrets are masked
	Dir          string          `json:"cwd"`
	Mode         string          `json:"mode"`
	Began        string          `json:"started_at"`
	DurationMS   int64           `json:"duration_ms"`
	ExitCode     int             `json:"exit_code"`
	AgentExit    *int            `json:"agent_exit_code"` // null: it was killed by a signal, or did not start
	AgentSignal  *string         `json:"agent_signal"`
	EndedBy      *string         `json:"ended_by"` // the signal that we got, or "timeout"
	Error        *reportError    `json:"error"`
	Session      *string         `json:"session_id"`
	Model        *string         `json:"model"`
	Answered     *bool           `json:"answered"`      // null: unknown
	Denials      []reportDenial  `json:"denials"`       //
	DenialsKnown bool            `json:"denials_known"` // false: the list may be incomplete
	Usage        *reportUsage    `json:"usage"`         //
	Policies     []agent.Policy  `json:"policies"`      // what is enforced, and what was only requested
	Sandbox      *event.Walls    `json:"sandbox"`       // what confined the agent's commands, if its records say so
	Warnings     []reportWarning `json:"warnings"`      //
	Records      []string        `json:"records"`       // files that the evidence was read from
	Attempts     int             `json:"attempts"`      // with --output-schema
	Rehearsed    bool            `json:"rehearsed"`     // on the scripted model
	Undo         *Undo           `json:"undo"`          // null: no snapshots were taken
	Walls        *event.Walls    `json:"walls"`         // our walls around the agent; null: none
}

type reportError struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Detail  map[string]any `json:"detail,omitempty"`
}

type reportDenial struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	CallID string `json:"call_id,omitempty"`
}

type reportUsage struct {
	Input     int64    `json:"input_tokens"`
	Output    int64    `json:"output_tokens"`
	Cached    int64    `json:"cached_input_tokens"`
	Reasoning int64    `json:"reasoning_tokens"`
	CostUSD   *float64 `json:"cost_usd"`
}

type reportWarning struct {
	Flag    string            `json:"flag"`
	Value   string            `json:"value"`
	Kind    agent.WarningKind `json:"kind"`
	Message string            `json:"message"`
}

// reportable checks before the run that the report can be written. It keeps the directory open, so that the agent
// cannot redirect the report.
func (c *shimCall) reportable() error {
	if c.args.Report == "" {
		return nil
	}
	_, last := filepath.Split(c.args.Report)
	c.args.Report = pathname.From(c.host.Dir, c.args.Report)
	dir, name := filepath.Split(c.args.Report)
	if last == "" || name == "." || name == ".." {
		return notAFile(c.args.Report)
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return fault.New(fault.ArgError, "--report: there is no directory %s", printable(filepath.Dir(c.args.Report))).
			Hint("mkdir -p %q", printable(filepath.Dir(c.args.Report)))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.New(fault.ArgError, "--report: the directory %s cannot be used", printable(dir)).
			Because(fault.Bare(err)).Hint("--report=run.json")
	}
	c.temp.later(func() { _ = root.Close() })
	switch info, err = root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fault.New(fault.ArgError, "--report: %s cannot be used", printable(c.args.Report)).
			Because(fault.Bare(err)).Hint("--report=run.json")
	case info.Mode()&fs.ModeSymlink != 0:
		return fault.New(fault.ArgError, "--report: %s is a link", printable(c.args.Report)).
			Hint("give the file itself: --report=run.json")
	case !info.Mode().IsRegular():
		return notAFile(c.args.Report)
	}
	c.reportDir = root
	return nil
}

func notAFile(path string) error {
	return fault.New(fault.ArgError, "--report: %s is not a file", printable(path)).Hint("--report=run.json")
}

// putReport replaces whatever has the report's name, even a link, with a file that only the user can read. It returns
// an error if the directory was replaced.
func (c *shimCall) putReport(data []byte) error {
	dir, name := filepath.Split(c.args.Report)
	held, err := c.reportDir.Stat(".")
	if err != nil {
		return fault.Bare(err)
	}
	if there, err := os.Stat(dir); err != nil || !os.SameFile(held, there) {
		return fmt.Errorf("%s is not the directory that it was before", printable(dir))
	}
	return fault.Bare(workspace.WriteAtomic(c.reportDir, name, data))
}

func (c *shimCall) report(launch agent.Launch, warnings []agent.Warning, o outcome, code int) error {
	r := Report{
		Schema: 1, Tool: c.shim.Version, Agent: c.driver.Name(), Version: optional(c.install.Version),
		Path: launch.Path,
		Argv: redact.Args(append([]string{c.driver.Describe().Binary}, launch.Args...)), Dir: c.dir,
		Mode:  string(c.mode),
		Began: o.began.UTC().Format(time.RFC3339Nano), DurationMS: o.took.Milliseconds(), ExitCode: code,
		AgentSignal: optional(o.exit.Signal), EndedBy: optional(o.exit.EndedBy),
		Session: optional(cmp.Or(o.evidence.Session, launch.Session)), Model: optional(o.evidence.Model),
		Denials: []reportDenial{}, DenialsKnown: o.evidence.DenialsKnown,
		Policies: append([]agent.Policy{}, launch.Policies...), Warnings: []reportWarning{},
		Records: append([]string{}, o.evidence.Records...), Sandbox: o.evidence.Walls,
		Attempts: max(1, c.attempts), Rehearsed: c.args.Rehearse != nil,
	}
	if c.snapshot != nil {
		r.Undo = &c.snapshot.Undo
	}
	if c.walls != nil {
		r.Walls = c.walls.Enforced()
	}
	if o.exit.Failed == nil && o.exit.Signal == "" {
		r.AgentExit = &o.exit.Code
	}
	if o.fault != nil {
		r.Error = &reportError{Code: string(o.fault.Code), Message: redact.String(o.fault.Error())}
		r.Error.Detail, _ = redact.Value(o.fault.Detail).(map[string]any)
	}
	if o.evidence.Answered != agent.Unknown {
		r.Answered = new(o.evidence.Answered == agent.Yes)
	}
	for _, d := range o.evidence.Denials {
		r.Denials = append(r.Denials,
			reportDenial{redact.String(d.Tool), redact.String(d.Reason), redact.String(d.CallID)})
	}
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, reportWarning(w))
	}
	if u := o.evidence.Usage; u != nil {
		r.Usage = &reportUsage{u.Input, u.Output, u.Cached, u.Reasoning, u.CostUSD}
	}
	if r.Rehearsed { // a script costs nothing, and the agent's home is removed
		r.Records = []string{}
		if r.Usage != nil {
			r.Usage.CostUSD = nil
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return c.putReport(append(data, '\n'))
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// translation is the line of --trace-translate.
type translation struct {
	Agent       string   `json:"agent"`
	Version     *string  `json:"version"`
	Mode        string   `json:"mode"`
	Command     string   `json:"command"`
	Args        []string `json:"args"`
	ShimArgs    []string `json:"shimArgs"`
	Passthrough []string `json:"passthroughArgs"`
	// names of the variables that are added or changed, with values unless secret
	Environment []string       `json:"environment"`
	Prompt      string         `json:"prompt"` // how it is passed: stdin, argument, none
	Warnings    []string       `json:"warnings"`
	Requests    map[string]any `json:"requests"`
	Policies    []agent.Policy `json:"policies"`
}

// trace prints one line with a fixed beginning, for tools.
func (c *shimCall) trace(launch agent.Launch, warnings []agent.Warning) {
	t := translation{
		Agent: c.driver.Name(), Version: optional(c.install.Version), Mode: string(c.mode), Command: launch.Path,
		Args: redact.Args(launch.Args), ShimArgs: redact.Args(launch.Args[:launch.Translated]),
		Passthrough: redact.Args(launch.Args[launch.Translated:]),
		Environment: redact.Env(added(c.host.Env, launch.Env)), Prompt: "none", Warnings: []string{},
		Policies: launch.Policies,
		Requests: map[string]any{
			"approval": c.shared.Approval.Value, "sandbox": c.shared.Sandbox.Value, "output": c.shared.Output.Value,
			"model": optional(c.shared.Model.Value), "web": c.shared.Web.Value,
			"sandboxExplicit": c.shared.Sandbox.Typed(),
		},
	}
	if c.mode == "one-shot" {
		t.Prompt = "stdin"
		if launch.Prompt == agent.ByArgument {
			t.Prompt = "argument"
		}
	}
	for _, w := range warnings {
		t.Warnings = append(t.Warnings, w.Message)
	}
	line, err := json.Marshal(t)
	if err != nil {
		return
	}
	_, _ = c.host.Stderr.Write(append(append([]byte("OA_TRANSLATION="), line...), '\n'))
}

// added returns the entries of the second environment that are not in the first.
func added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(entry string) bool { return slices.Contains(before, entry) })
}
