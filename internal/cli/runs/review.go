package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/work/review"
	"omniagent/internal/work/run"
)

// The exit codes of a review: the severity of the worst finding, or an incomplete answer.
const (
	foundNote    contract.Code = "FOUND_NOTE"
	foundWarning contract.Code = "FOUND_WARNING"
	foundError   contract.Code = "FOUND_ERROR"
	unreadAnswer contract.Code = "UNREAD_ANSWER"
)

type reviewFinding struct {
	review.Finding
	Placed bool `json:"placed" doc:"the diff shows the line"`
}

type reviewData struct {
	Findings contract.Foreigns[reviewFinding] `json:"findings"`
	Worst    string                           `json:"worst" enum:"none,note,warning,error"`
	Whole    bool                             `json:"whole" doc:"no line of the answer is missing or unread"`
	Unread   contract.Foreigns[string]        `json:"unread" doc:"lines of the answer in no form that was asked for"`
	Files    int                              `json:"files" doc:"of the diff"`
	Run      string                           `json:"run_id" doc:"omniagent runs show has all of it; empty: a dry run"`
	Agent    string                           `json:"agent"`
	Usage    *run.Usage                       `json:"usage" doc:"null: the agent does not tell it"`
	SARIF    *string                          `json:"sarif" doc:"the file that was written"`
}

// PlainText returns a line for each finding, as compilers write them.
func (d reviewData) PlainText() string {
	var b strings.Builder
	for _, f := range d.Findings {
		place := ""
		if !f.Placed {
			place = " (the diff does not show this line)"
		}
		fmt.Fprintf(&b, "%s:%d: %s: %s%s\n", f.File, f.Line, f.Severity, text.Flat(f.Title), place)
		if detail := strings.TrimSpace(f.Detail); detail != "" {
			b.WriteString("  " + strings.ReplaceAll(detail, "\n", "\n  ") + "\n")
		}
	}
	for _, line := range d.Unread {
		b.WriteString("not read: " + line + "\n")
	}
	switch {
	case d.Files == 0:
		b.WriteString("nobody was asked: there is no change\n")
	case d.Run == "":
		fmt.Fprintf(&b, "%s would be asked about %s\n", d.Agent, text.Plural(d.Files, "file"))
	case !d.Whole && len(d.Findings)+len(d.Unread) == 0:
		fmt.Fprintf(&b, "there is no answer; omniagent runs show %s says why\n", d.Run)
	case !d.Whole:
		fmt.Fprintf(&b, "%s in %s, and the answer is not whole; omniagent runs show %s has it\n",
			text.Plural(len(d.Findings), "finding"), text.Plural(d.Files, "file"), d.Run)
	default:
		fmt.Fprintf(&b, "%s in %s\n", text.Plural(len(d.Findings), "finding"), text.Plural(d.Files, "file"))
	}
	return b.String()
}

// neverFails is the value of --fail-on for callers that read the data instead of the exit code.
const neverFails = "never"

func (p commands) review() *contract.Command {
	c := p.runCommand(contract.Command{
		Path: "review", Summary: "have an agent review a diff; exit codes by severity", Here: true,
		Detail: "The diff comes from standard input. Without one it is what differs between the working tree and " +
			"--base, or the last commit, with new files that are not ignored.\n" +
			"The agent reads and changes nothing. Unreadable lines of the answer are reported, and the review " +
			"then counts as incomplete; a finding outside of the diff is marked.",
		Params: append(append([]contract.Param{
			{
				Name: "base", Kind: contract.Name, MaxLen: 256, Pattern: `^[^-].*$`,
				Help: "branch to compare with, such as origin/main",
			},
			{Name: "agent", Kind: contract.Name, Help: "who reviews"},
			{Name: "model", Short: "m", Kind: contract.Name, Help: "model, in the agent's own words"},
			{
				Name: "fail-on", Kind: contract.Enum, Enum: []string{"note", "warning", "error", neverFails},
				Default: string(review.Warning),
				Help:    "lowest severity that makes the command fail; never: 0 for every answer, see data.whole",
			},
			{Name: "look-at", Kind: contract.Text, MaxLen: 4096, Help: "what matters most"},
			{Name: "sarif", Kind: contract.File, Help: "file to write as SARIF 2.1.0"},
		}, flags.Approval()), append(modelParams(), flags.Rehearsal()...)...),
		Rules: flags.RunRehearsalRules(),
		Stdin: &contract.Stdin{Format: "diff", Lines: true},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "nothing was found that counts"},
			contract.Specific(80, foundNote, "the worst is a note"),
			contract.Specific(81, foundWarning, "the worst is a warning"),
			contract.Specific(82, foundError, "the worst is an error"),
			contract.Specific(83, unreadAnswer, "the answer is not whole, without --fail-on never"),
			{Code: contract.NotFound, When: "no such agent, or no repository"},
			{Code: contract.Unavailable, When: "the model's service does not answer", Changed: contract.Some},
		},
		Examples: []contract.Example{
			{Description: "A branch", Command: "omniagent review --agent codex --base main"},
			{Description: "What is not committed yet", Command: "omniagent review --agent claude"},
			{
				Description: "In CI, with a file that the forge shows at the lines",
				Command:     "omniagent review --agent codex --base origin/main --sarif review.sarif",
			},
			{Description: "Any diff", Command: "git diff HEAD~3 | omniagent review --agent claude --json"},
		},
		Validate: validateRun,
		Run:      contract.WithStore(stores.Runs, p.runReview),
	})
	c.Output, c.Background, c.Job, c.Again = contract.TypeOf[reviewData](), nil, nil, nil
	c.Volatile = []string{"run_id", "usage"}
	c.Exits = slices.DeleteFunc(c.Exits, func(e contract.Exit) bool { return e.Code == contract.Conflict })
	c.Children = append([]contract.Subprocess{{Binary: "git", CallerArgs: []string{"base"}}}, c.Children...)
	return c
}

func (p commands) runReview(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
	text, err := diffOf(ctx, c)
	if err != nil {
		return contract.Result{}, err
	}
	diff := review.ParseDiff(text)
	if strings.TrimSpace(text) != "" && len(diff.Files) == 0 {
		return contract.Result{}, fault.New(fault.ArgError, "standard input holds something else than a diff").
			Hint("git diff | omniagent review, or omniagent review --base origin/main")
	}
	data := reviewData{Files: len(diff.Files), Whole: true, Worst: "none"}
	task, err := p.reviewTask(c, diff)
	if err != nil {
		return contract.Result{}, err
	}
	data.Agent = strings.Join(task.Agents, ",")
	if len(diff.Files) == 0 {
		c.Warn("NO_CHANGE", "%s", nothingToReview(c))
		return reviewed(c, diff, data, nil)
	}
	if c.DryRun() {
		return contract.Result{
			Data: data, Effect: contract.Created, Target: map[string]any{"agents": task.Agents, "task": task.Text},
		}, nil
	}
	store.Prune(ctx, c.Config.Duration("run.keep"))
	r, err := store.Create(ctx, task)
	if err != nil {
		return contract.Result{}, err
	}
	_, err = p.carryOut(ctx, c, r)
	data.Run = r.ID
	if n := len(r.Attempts); n > 0 {
		data.Agent = r.Attempts[n-1].Agent
	}
	if r.Result != nil {
		data.Usage = r.Result.Usage
	}
	// An agent that was denied a tool may still have given a complete answer.
	if err != nil && (r.Result == nil || r.Result.State != run.Blocked || r.Result.Text == "") {
		data.Whole = false
		return contract.Result{Data: data, Effect: contract.Updated}, err
	}
	if err != nil {
		c.Warn("TOOL_DENIED", "%s", fault.Of(err).Message)
	}
	answer := review.Read(r.Result.Text)
	data.Whole, data.Unread = answer.Whole, answer.Unread
	return reviewed(c, diff, data, answer.Findings)
}

func nothingToReview(c *contract.Call) string {
	if c.Host.StdinPiped && !c.Given("base") && !c.Given("input-file") {
		return "there is no change to review: standard input is empty. --base HEAD takes the working tree instead"
	}
	return "there is no change to review"
}

// reviewTask returns the task of a review. The agent may only read, unless a flag allows more.
func (p commands) reviewTask(c *contract.Call, diff review.Diff) (run.Task, error) {
	task, err := p.baseTask(c)
	if err != nil {
		return task, err
	}
	if task.Approval == setting.Default {
		task.Approval = setting.Plan
	}
	mark := "DIFF-" + ident.Hex(8)
	task.Text = review.Prompt(diff, mark, c.String("look-at"))
	if len(task.Text) > flags.LongestMessage {
		return task, flags.MessageTooLong()
	}
	return task, nil
}

// reviewed puts the findings into the answer, writes the file, and chooses the exit code.
func reviewed(c *contract.Call, diff review.Diff, data reviewData, findings []review.Finding) (contract.Result, error) {
	for _, f := range findings {
		data.Findings = append(data.Findings, reviewFinding{f, diff.Has(f.File, f.Line)})
	}
	worst := review.Worst(findings)
	data.Worst = cmp.Or(string(worst), "none")
	result := contract.Result{Effect: contract.Updated}
	if path := c.Path("sarif"); path != "" && !c.DryRun() {
		text, err := review.SARIF(diff, findings, c.Program.Name, c.Program.Version)
		if err == nil {
			err = workspace.WriteFile(path, append(text, '\n'), 0o644)
		}
		if err != nil {
			return contract.Result{Data: data, Effect: contract.Updated}, err
		}
		data.SARIF = &path
	}
	codes := map[review.Severity]contract.Code{
		review.Note: foundNote, review.Warning: foundWarning, review.Error: foundError,
	}
	limit := review.Severity(c.String("fail-on"))
	switch counts := slices.Contains(review.Severities(), limit); {
	case counts && worst != "" && worst.AtLeast(limit):
		result.Exit = codes[worst]
	case !data.Whole && limit != neverFails:
		result.Exit = unreadAnswer
	}
	result.Data = data
	return result, nil
}

// diffOf returns the diff to review: standard input or --input-file, or without them what differs from --base.
func diffOf(ctx context.Context, c *contract.Call) (string, error) {
	if c.Given("base") || !c.Host.StdinPiped && !c.Given("input-file") {
		return workingDiff(ctx, c, c.String("base"))
	}
	in, err := c.Input(ctx)
	if err != nil {
		return "", err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, flags.LongestMessage+1))
	if err != nil || len(data) > flags.LongestMessage {
		return "", cmp.Or(err, flags.MessageTooLong())
	}
	return string(data), nil
}
