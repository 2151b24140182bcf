package safety

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/workspace"
)

type trustResult struct {
	ID     string                `json:"id" doc:"the file, or a directory that brings none"`
	OK     bool                  `json:"ok"`
	SHA256 string                `json:"sha256"`
	Change string                `json:"change" enum:"trusted,changed,unchanged,forgotten,not_found,failed"`
	Error  *contract.ErrorDetail `json:"error"`

	Counts contract.Foreign[trustCounts] `json:"counts" doc:"what the content changes once it is trusted"`
}

type trustCounts struct {
	Lines []string `json:"lines"`
}

type trustData struct {
	Summary contract.BatchSummary `json:"summary"`
	Results []trustResult         `json:"results"`

	dryRun bool
}

// ForPeople makes the lines fit the screen.
func (trustData) ForPeople() {}

// PlainText returns a line for each file, and below it what its content changes.
func (d trustData) PlainText() string {
	var b strings.Builder
	if d.dryRun {
		b.WriteString("Nothing was changed. Without --dry-run it is:\n")
	}
	for _, r := range d.Results {
		if r.Error != nil {
			why := r.Error.Message
			if !strings.Contains(why, r.ID) {
				why = r.ID + ": " + why
			}
			fmt.Fprintf(&b, "%-9s  %s\n", r.Change, text.Visible(why))
			continue
		}
		fmt.Fprintf(&b, "%-9s  %s\n", strings.ReplaceAll(r.Change, "_", " "), text.Visible(r.ID))
		for _, line := range r.Counts.Value.Lines {
			fmt.Fprintf(&b, "%11s%s\n", "", text.Visible(line))
		}
	}
	return b.String()
}

func (p commands) trust() *contract.Command {
	return &contract.Command{
		Path: "trust", Summary: "trust what a repository brings, as it is now",
		Here: true, Class: contract.Envelope,
		Danger: contract.Mutating, Version: "1.0.0",
		Detail: "What a repository brings has no effect until its exact content was trusted; a changed file has to " +
			"be trusted again. That is .omniagent and\n" +
			".eidolon with configuration, models, agents and commands, AGENTS.md and CLAUDE.md, skills, " +
			"agents/omniagent.config.*, and what other agents get\n" +
			"in a conversation: opencode's plugins, copilot's hooks, and of Claude Code .claude/settings.json, " +
			".claude/agents/*.md and .mcp.json.\n" +
			"A repository stands for all of these files that it has. The answer lists them with what each changes; " +
			"with --dry-run it does nothing else.",
		DryRun: true, Reversible: true, Batch: true, LooseConfig: true, Scopes: []string{},
		Output: contract.TypeOf[trustData](),
		Params: []contract.Param{
			{
				Name: "path", Kind: contract.File, Position: 1, Variadic: true,
				Help: "repositories or files; this directory unless given",
			},
			{Name: "remove", Kind: contract.Bool, Help: "trust no longer"},
		},
		Files: []contract.FileEffect{
			{Path: "~/.local/state/omniagent/trust.json", Type: "state"},
			{Path: "~/.local/state/omniagent/trusted/", Type: "state"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the content is trusted, or with --remove no longer"},
			{Code: contract.PartialFailure, When: "some files failed; see results[]"},
			{Code: contract.PreconditionFailed, When: "no home directory, or the lock is held", Retryable: true},
			{Code: contract.NotFound, When: "there is no configuration file to trust"},
			{Code: contract.PermissionDenied, When: "a file cannot be read or written"},
		},
		Examples: []contract.Example{
			{Description: "Trust the repository around this directory", Command: "omniagent trust"},
			{Description: "See what would be trusted", Command: "omniagent trust . --dry-run"},
			{Description: "Trust it no longer", Command: "omniagent trust --remove"},
		},
		Run: p.runTrust,
	}
}

func (p commands) runTrust(_ context.Context, c *contract.Call) (contract.Result, error) {
	paths := c.Strings("path")
	if len(paths) == 0 {
		paths = []string{c.Dir()}
	}
	record := config.OpenTrust(c.TrustFile())
	data, all := trustData{dryRun: c.DryRun()}, contract.Outcomes{}
	var files []string
	for i, path := range paths {
		for _, file := range p.filesAt(c, record, c.Abs(path)) {
			result, err := p.trustOne(c, record, file)
			files = append(files, result.ID)
			result.Error = all.Add(result.Change, err)
			if result.OK = err == nil; err != nil {
				result.Change = "failed"
				if whole := unsplitPath(c, paths, i); whole != "" {
					fault.Of(err).Hint("there is %q: give it as one argument", whole).With("did_you_mean", whole)
				}
			}
			data.Results = append(data.Results, result)
		}
	}
	if TrustedNow(c, c.Config.ProjectFile()) {
		c.ClearWarnings(config.UntrustedConfig)
	}
	data.Summary = all.BatchSummary
	return all.Result(data, map[string]any{"files": files})
}

// unsplitPath returns an existing path with spaces that the shell has split into the argument at i and its neighbours,
// or "".
func unsplitPath(c *contract.Call, paths []string, i int) string {
	const most = 5 // arguments
	for from := i; from >= max(0, i-most+1); from-- {
		for to := max(from+2, i+1); to <= min(len(paths), from+most); to++ {
			if whole := strings.Join(paths[from:to], " "); parts.FileExists(c.Abs(whole)) {
				return whole
			}
		}
	}
	return ""
}

// filesAt returns the files that a path stands for. For a directory these are the trustable files of its repository, or
// with --remove the trusted ones.
func (p commands) filesAt(c *contract.Call, record *config.Trust, path string) []string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}
	}
	files := p.trustable(c, path)
	if c.Bool("remove") {
		files = recordedBeneath(record, path)
	}
	if len(files) == 0 {
		return []string{path} // trustOne reports that there is nothing to trust
	}
	return files
}

func (p commands) trustOne(c *contract.Call, record *config.Trust, file string) (trustResult, error) {
	result := trustResult{ID: file}
	old, had := record.Recorded(file)
	if c.Bool("remove") {
		result.Change = "forgotten"
		if !had {
			result.Change = "not_found"
			return result, nil
		}
		result.SHA256 = old.SHA256
		if c.DryRun() {
			return result, nil
		}
		return result, record.Forget(file)
	}
	if config.Leaves(file) {
		return result, fault.New(fault.Unsafe, "%s is a link that leads out of the project", file).
			Hint("put a file in its place")
	}
	if record.Refuses(file) {
		return result, fault.New(fault.Unsafe, "trust would be recorded in the repository itself, in %s",
			c.TrustFile()).Hint("set XDG_STATE_HOME to another place")
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return result, fault.New(fault.FileMissing, "%s brings nothing that needs trust", file).
			With("path", file).Hint("omniagent trust --help lists what can count")
	}
	content, err := workspace.ReadFile(file, maxTrusted)
	if err != nil {
		return result, err
	}
	sum := sha256.Sum256(content)
	result.SHA256, result.Counts.Value.Lines = hex.EncodeToString(sum[:]), p.whatCounts(c.Program.ConfigKeys(), file,
		content)
	switch {
	case !had:
		result.Change = "trusted"
	case old.SHA256 != result.SHA256:
		result.Change = "changed"
	default:
		result.Change = "unchanged"
		return result, nil
	}
	if c.DryRun() {
		return result, nil
	}
	return result, record.Add(file, content)
}

type trustRow struct {
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
	At      string `json:"at"`
	Current bool   `json:"current" doc:"the file still has that content, and it counts"`
	State   string `json:"state" enum:"current,changed,missing,refused" doc:"what became of the file since"`
}

type trustListData struct {
	Trusted contract.Rows[trustRow] `json:"trusted"`
}

func trustList() *contract.Command {
	return &contract.Command{
		Path: "trust list", Summary: "list what is trusted", Class: contract.Envelope, Danger: contract.Safe,
		Version: "1.0.0", LooseConfig: true, Scopes: []string{}, Output: contract.TypeOf[trustListData](),
		List: &contract.List{
			Key: "trusted", ID: "path", Order: "path", Columns: []string{"path", "state", "at"},
			None: "nothing is trusted yet; omniagent trust records what a repository brings, as it is now",
		},
		Exits:    []contract.Exit{{Code: contract.Success, When: "the trusted files are listed"}},
		Examples: []contract.Example{{Description: "What is trusted", Command: "omniagent trust list"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			var rows []trustRow
			for _, e := range config.OpenTrust(c.TrustFile()).List() {
				state := trustState(c, e.Path)
				rows = append(rows, trustRow{
					e.Path, e.SHA256, e.At.Format("2006-01-02T15:04:05Z"), state == "current",
					state,
				})
			}
			return contract.Result{Data: trustListData{contract.RowsOf(rows)}}, nil
		},
	}
}

// TrustedNow reports whether a file still has the content that was trusted.
func TrustedNow(c *contract.Call, file string) bool { return trustState(c, file) == "current" }

// trustState returns the state of a trusted file: missing, current, refused or changed.
func trustState(c *contract.Call, file string) string {
	content, err := workspace.ReadFile(file, maxTrusted)
	trust := config.OpenTrust(c.TrustFile())
	switch entry, _ := trust.Recorded(file); {
	case err != nil:
		return "missing"
	case trust.Trusted(file, content):
		return "current"
	case config.Leaves(file) || trust.Refuses(file) || entry.Path == "":
		return "refused"
	}
	return "changed"
}
