package runs

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/work/run"
)

// runData is the result of every command that carries out a run.
type runData struct {
	ID          string                         `json:"run_id" doc:"empty: a dry run of what would begin one"`
	Status      string                         `json:"status" enum:"queued,starting,running,needs_input,succeeded,failed,blocked,stalled,timed_out,cancelled,unknown_outcome"`
	Reason      string                         `json:"reason" doc:"why it has that status, in one word; docs/run.md lists them"`
	Agent       string                         `json:"agent"`
	Session     *string                        `json:"session_id" doc:"the conversation: omniagent session show; null: there was none"`
	Text        contract.Foreign[string]       `json:"text" doc:"the agent's answer"`
	Changed     *runChanges                    `json:"changed" doc:"files that differ from before; null: not known"`
	Denials     contract.Foreigns[runDenial]   `json:"denials"`
	Questions   contract.Foreigns[runQuestion] `json:"questions" doc:"without an answer"`
	Asks        contract.Foreigns[string]      `json:"open_questions" doc:"with which the answer of a success ends"`
	NotKept     contract.Foreigns[string]      `json:"not_kept" doc:"what was written to places that the walls throw away, such as /tmp and the home directory"`
	Unfinished  contract.Foreigns[string]      `json:"unfinished" doc:"commands that still ran when the agent's turn ended, and were ended with it: what they had not done is missing"`
	Usage       *run.Usage                     `json:"usage" doc:"of all attempts; null: the agent does not tell it"`
	Attempts    int                            `json:"attempts"`
	Waits       string                         `json:"waits_for" doc:"of a queued run: what it waits for, and its place; else empty"`
	Fingerprint string                         `json:"fingerprint" doc:"the same for the same task, agent, version, mode and directory"`
	DurationMS  int64                          `json:"duration_ms" doc:"without waited_ms"`
	WaitedMS    int64                          `json:"waited_ms" doc:"for the answer of a person"`
	ExitCode    *int                           `json:"exit_code" doc:"of the agent's process; null: it has none, or never began"`
	Evidence    contract.Foreigns[string]      `json:"evidence" doc:"what the status is drawn from"`
	Fork        *string                        `json:"fork" doc:"in which it worked: omniagent fork diff, apply or delete; null: none"`
	Check       *runChecked                    `json:"check" doc:"how --check ended; null without --check, or if the agent did not finish"`
	Summary     runSummary                     `json:"summary"`

	Job      *string `json:"job_id,omitempty" doc:"with --detach: run_id"`
	Terminal *bool   `json:"terminal,omitempty" doc:"with --detach: whether it is over"`
	StatusBy *string `json:"status_command,omitempty"`
	CancelBy *string `json:"cancel_command,omitempty"`
	Poll     *int64  `json:"poll_interval_ms,omitempty"`
	Timeout  *int64  `json:"timeout_ms,omitempty" doc:"0: none"`
	PID      *int    `json:"background_pid,omitempty" doc:"the process that carries it out"`

	undo    string   // the command that takes the changes back, or ""
	where   string   // the directory of the run if it is not that of the call, or ""
	would   string   // the text of a dry run
	hints   []string // next steps that the error shows already
	skipped []string // see run.Record
	doubts  []run.Doubt
	beside  []string // other runs that worked in the same directory meanwhile
}

type runChanges struct {
	Count   int                                `json:"count"`
	Files   contract.Foreigns[snapshot.Change] `json:"files"`
	Git     contract.Foreigns[string]          `json:"git" doc:"what differs of the repository itself: HEAD, refs, configuration, hooks"`
	Gone    contract.Foreigns[run.Gone]        `json:"gone" doc:"those of git that are gone although git needs them, with the number of objects, reflogs or files"`
	Ignored int                                `json:"ignored" doc:"further files, which the repository ignores"`
	Later   contract.Foreigns[string]          `json:"runs_later" doc:"those of files, git and perhaps, relative to the directory, that run later by themselves, such as a hook"`
	Partial contract.Foreigns[string]          `json:"partial" doc:"what could not be looked at"`
	Perhaps contract.Foreigns[run.Doubt]       `json:"perhaps" doc:"what differs too, perhaps because of others, and why; not counted"`
	By      string                             `json:"by" enum:"agent" doc:"who changed count and files"`
}

type runChecked struct {
	Command  string                   `json:"command"`
	ExitCode *int                     `json:"exit_code" doc:"null: it was ended, or could not begin"`
	Output   contract.Foreign[string] `json:"output" doc:"the end of it"`
	Duration int64                    `json:"duration_ms"`
}

type runDenial run.Denial

type runQuestion struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Options []string `json:"options"`
	Tool    string   `json:"tool" doc:"that may run or not; empty: it is another question"`
	Input   string   `json:"input" doc:"what it would run with"`
}

type runSummary struct {
	What   contract.Foreign[string]     `json:"what" doc:"the beginning of the answer"`
	Why    contract.Foreign[string]     `json:"why" doc:"the beginning of the task"`
	Files  contract.Foreigns[string]    `json:"files"`
	Checks contract.Foreigns[run.Check] `json:"checks" doc:"the check, if it ran"`
	Next   []string                     `json:"next_steps"`
}

func runDataOf(r run.Record) runData {
	d := runData{
		ID: r.ID, Status: string(r.State), Attempts: len(r.Attempts), Questions: questionsOf(r),
		Fork:    contract.OrNil(r.Fork),
		skipped: r.Skipped(),
	}
	worked, waited := r.Times(time.Now())
	d.DurationMS, d.WaitedMS = worked.Milliseconds(), waited.Milliseconds()
	d.Summary.Why.Value = text.OneLine(r.Text, 300)
	if n := len(r.Attempts); n > 0 {
		a := r.Attempts[n-1]
		d.Agent, d.Session, d.Fingerprint, d.ExitCode = a.Agent, contract.OrNil(a.Session), a.Fingerprint, a.ExitCode
	} else if len(r.Agents) > 0 {
		d.Agent = r.Agents[0]
	}
	if out := r.Result; out != nil {
		d.add(*out, r.Dir)
		if f := r.Advised(); f != nil {
			d.Summary.Next = append(d.Summary.Next, f.Suggestion)
		}
		if r.State.Terminal() {
			d.DurationMS, d.WaitedMS = out.DurationMS, out.WaitedMS
		}
	}
	if r.State == run.NeedsInput {
		d.Summary.Next = append(d.Summary.Next, r.Answers()...)
	}
	if r.Detached && !r.State.Terminal() {
		d.Summary.Next = append(d.Summary.Next, "omniagent runs watch "+r.ID)
	}
	if r.Fork != "" && r.State.Terminal() {
		for _, rest := range []string{
			"diff " + r.Fork, "apply " + r.Fork, "delete " + r.Fork + " --confirm-destructive",
		} {
			d.Summary.Next = append(d.Summary.Next, "omniagent fork "+rest)
		}
	}
	return d
}

// add adds the outcome of a run in a directory. It makes the paths absolute, which the record has relative to dir.
func (d *runData) add(out run.Result, dir string) {
	d.Reason, d.Usage, d.Text.Value = string(out.Reason), out.Usage, out.Text
	d.Asks, d.Evidence = out.Asks, out.Evidence
	d.NotKept, d.Unfinished = out.DeletedPaths, out.Unfinished
	d.Summary.What.Value = text.OneLine(out.Text, 300)
	if out.Tested != nil {
		t := *out.Tested
		d.Summary.Checks = append(d.Summary.Checks,
			run.Check{Command: t.Command, OK: t.ExitCode != nil && *t.ExitCode == 0, ExitCode: t.ExitCode})
		d.Check = &runChecked{t.Command, t.ExitCode, contract.Foreign[string]{Value: t.Output}, t.DurationMS}
	}
	for _, denial := range out.Denials {
		d.Denials = append(d.Denials, runDenial(denial))
	}
	if c := out.Changed; c != nil {
		files := slices.Clone(c.Files)
		perhaps := slices.Clone(c.Perhaps)
		for i := range perhaps {
			perhaps[i].Path = filepath.Join(dir, filepath.FromSlash(perhaps[i].Path))
		}
		d.Changed = &runChanges{c.Count, files, c.Git, c.Gone, c.Ignored, c.Later, c.Partial, perhaps, "agent"}
		d.doubts = c.Perhaps
		for i, f := range c.Files {
			files[i].Path = filepath.Join(dir, filepath.FromSlash(f.Path))
			d.Summary.Files = append(d.Summary.Files, string(f.Status)+" "+f.Path)
		}
	}
}

// terminal reports whether the run is over.
func (d runData) terminal() bool { return run.State(d.Status).Terminal() }

// waitsFor says what a queued run waits for, and its place in the queue. It returns "" for any other run.
func waitsFor(store run.Store, r run.Record) string {
	if r.State != run.Queued {
		return ""
	}
	if !r.Until.IsZero() {
		return untilLifted(r)
	}
	if _, alive := store.Owner(r.ID); !alive {
		return "no process carries it out: omniagent runs continue " + r.ID
	}
	if n := store.Place(r.ID); n > 0 {
		return fmt.Sprintf("place %d in the queue, until another run ends", n)
	}
	return ""
}

// untilLifted says until when a run waits for a limit of the service.
func untilLifted(r run.Record) string {
	return "waits until " + r.Until.Local().Format(time.DateTime) + ", when the service lifts its limit"
}

func questionsOf(r run.Record) (all []runQuestion) {
	for _, q := range r.Open() {
		all = append(all, runQuestion{q.ID, q.Text, q.Options, q.Tool, q.Input})
	}
	return all
}

// ForPeople makes the lines fit the screen.
func (runData) ForPeople() {}

// PlainText returns the summary for people.
func (d runData) PlainText() string {
	if d.would != "" {
		return d.would
	}
	var b strings.Builder
	if d.Text.Value != "" {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(d.Text.Value))
	}
	reason := d.Reason
	if c := d.Changed; c != nil && c.Ignored > 0 && reason == string(run.Unchanged) {
		reason = ""
	}
	fmt.Fprintf(&b, "%s: %s", d.Agent, endWords(d.Status, reason))
	took := (time.Duration(d.DurationMS) * time.Millisecond).Round(100 * time.Millisecond)
	switch {
	case d.Waits != "":
		fmt.Fprintf(&b, ", %s", d.Waits)
	case d.Attempts > 0:
		fmt.Fprintf(&b, " after %s", took)
	case d.terminal():
		fmt.Fprintf(&b, "; it waited for %s", took)
	}
	if waited := time.Duration(d.WaitedMS) * time.Millisecond; waited >= time.Second {
		fmt.Fprintf(&b, " and %s of waiting for an answer", waited.Round(time.Second))
	}
	if u := d.Usage; u != nil {
		fmt.Fprintf(&b, ", %d tokens in, %d out", u.Input, u.Output)
		if u.CostUSD != nil {
			fmt.Fprintf(&b, ", %.4f USD", *u.CostUSD)
		}
	}
	b.WriteString("\n")
	for _, line := range d.skipped {
		fmt.Fprintf(&b, "%s.\n", text.Visible(line))
	}
	d.changes(&b)
	if k := d.Check; k != nil {
		k.tell(&b)
	}
	if lost := (&event.End{NotKept: d.NotKept}).Lost(); lost != "" {
		fmt.Fprintf(&b, "%s%s.\n", strings.ToUpper(lost[:1]), lost[1:])
	}
	for _, command := range d.Unfinished {
		fmt.Fprintf(&b, "Not finished: %s still ran when the turn ended, and was ended with it.\n",
			text.OneLine(command, 200))
	}
	for _, denial := range d.Denials {
		fmt.Fprintf(&b, "Denied: %s: %s\n", denial.Tool, text.OneLine(denial.Reason, 200))
	}
	for _, q := range d.Questions {
		fmt.Fprintf(&b, "Question %s: %s\n", q.ID, q.Text)
		if !strings.Contains(q.Text, q.Input) {
			fmt.Fprintf(&b, "  %s %s\n", q.Tool, strings.ReplaceAll(text.Visible(q.Input), "\n", "\n  "))
		}
		if len(q.Options) > 0 {
			fmt.Fprintf(&b, "  Options: %s\n", strings.Join(q.Options, ", "))
		}
	}
	for _, step := range d.Summary.Next {
		if !slices.Contains(d.hints, step) {
			fmt.Fprintf(&b, "Next: %s\n", step)
		}
	}
	switch {
	case d.ID != "" && d.Fork != nil:
		fmt.Fprintf(&b, "Run %s, in the fork %s\n", d.ID, *d.Fork)
	case d.ID != "" && d.where != "":
		fmt.Fprintf(&b, "Run %s, in %s\n", d.ID, text.Name(d.where))
	case d.ID != "":
		fmt.Fprintf(&b, "Run %s\n", d.ID)
	}
	return b.String()
}

func (k runChecked) tell(b *strings.Builder) {
	if k.ExitCode != nil && *k.ExitCode == 0 {
		fmt.Fprintf(b, "The check succeeded: %s\n", text.OneLine(k.Command, 200))
		return
	}
	fmt.Fprintf(b, "The check failed: %s\n", text.OneLine(k.Command, 200))
	if words := strings.TrimSpace(k.Output.Value); words != "" {
		fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(text.Visible(words), "\n", "\n  "))
	}
}

const mostFilesShown = 20

func (d runData) changes(b *strings.Builder) {
	if d.Changed == nil {
		return
	}
	d.files(b)
	d.doubtful(b)
	for i, place := range d.Changed.Partial {
		if i == mostFilesShown {
			fmt.Fprintf(b, "  and %d more places\n", len(d.Changed.Partial)-i)
			break
		}
		b.WriteString("Not looked at: " + text.Visible(place) + "\n")
	}
	if len(d.Changed.Later) > 0 {
		b.WriteString(text.Visible(autorun.Sentence(d.Changed.Later)) + "\n")
	}
}

// files lists the files that the run has changed.
func (d runData) files(b *strings.Builder) {
	if d.Changed.Count == 0 {
		if len(d.doubts) == 0 && len(d.Changed.Partial) == 0 {
			b.WriteString("No file has changed" + exceptIgnored(d.Changed.Ignored) + ".\n")
		}
		d.repository(b)
		return
	}
	fmt.Fprintf(b, "%s changed:\n", text.Plural(d.Changed.Count, "file"))
	for i, f := range d.Changed.Files {
		if i == mostFilesShown {
			fmt.Fprintf(b, "  and %d more: omniagent runs diff %s\n", d.Changed.Count-i, d.ID)
			break
		}
		lines := ""
		if f.Added != nil && f.Removed != nil {
			lines = fmt.Sprintf("  +%d -%d", *f.Added, *f.Removed)
		}
		_, name, _ := strings.Cut(d.Summary.Files[i], " ")
		fmt.Fprintf(b, "  %-8s %s%s\n", f.Status, text.Name(name), lines)
	}
	if n := d.Changed.Ignored; n > 0 {
		fmt.Fprintf(b, "  and %s that git ignores\n", text.Plural(n, "file"))
	}
	d.repository(b)
}

// exceptIgnored returns the part of a sentence that mentions changed files that git ignores.
func exceptIgnored(ignored int) string {
	if ignored == 0 {
		return ""
	}
	return ", but for " + text.Plural(ignored, "file") + " that git ignores"
}

// repository lists the changes in the git directory, and names the command that takes the run back.
func (d runData) repository(b *strings.Builder) {
	var moved []string
	for _, name := range d.Changed.Git {
		if branch, ok := git.BranchOf(name); ok {
			moved = append(moved, branch)
		}
	}
	if len(moved) > 0 {
		fmt.Fprintf(b, "Commits were made or branches moved: %s\n", text.Visible(strings.Join(moved, ", ")))
	}
	if n := len(d.Changed.Git); n > 0 {
		some := strings.Join(d.Changed.Git[:min(n, mostOfGit)], ", ")
		if n > mostOfGit {
			some += fmt.Sprintf(" and %d more", n-mostOfGit)
		}
		fmt.Fprintf(b, "The repository itself changed: %s\n", text.Visible(some))
	}
	for _, g := range d.Changed.Gone {
		what := map[string]string{"objects": "object", "logs": "reflog"}[path.Base(g.Path)]
		fmt.Fprintf(b, "Gone, although git needs it: %s (%s)\n", text.Visible(g.Path),
			text.Plural(g.Count, cmp.Or(what, "file")))
	}
	if d.undo != "" && d.Changed.Count+len(d.Changed.Git)+d.Changed.Ignored > 0 {
		fmt.Fprintf(b, "Take back: %s\n", d.undo)
	}
}

// mostOfGit limits how many paths of a git directory, or how many doubtful paths, one line names.
const mostOfGit = 5

// mostBeside limits how many other runs one line names.
const mostBeside = 3

// addBeside names the other runs that may have made the doubtful changes.
func (d *runData) addBeside(store run.Store, r run.Record) {
	if len(d.doubts) > 0 {
		d.beside = store.Beside(r)
	}
}

// doubtful lists changes that others may have made.
func (d runData) doubtful(b *strings.Builder) {
	if len(d.doubts) == 0 {
		return
	}
	who := "you"
	if n := len(d.beside); n > 0 {
		who = strings.Join(d.beside[:min(n, mostBeside)], ", ")
		if n > mostBeside {
			who += fmt.Sprintf(" and %d more", n-mostBeside)
		}
	}
	fmt.Fprintf(b, "Changed meanwhile, perhaps by %s:\n", who)
	for i, f := range d.doubts {
		if i == mostFilesShown {
			fmt.Fprintf(b, "  and %d more\n", len(d.doubts)-i)
			break
		}
		fmt.Fprintf(b, "  %-8s %s: %s\n", f.Status, text.Name(f.Path), f.Why)
	}
}

// statusWords returns a status in words for people.
func statusWords(status string) string {
	return cmp.Or(map[string]string{
		"succeeded": "done", "needs_input": "waits for an answer", "timed_out": "ended by the time limit",
		"stalled": "ended, because it showed no sign of life", "unknown_outcome": "nobody saw how it ended",
	}[status], status)
}

// endWords returns a status and its reason in words for people.
func endWords(status, reason string) string {
	switch run.Reason(reason) {
	case "", run.Done, run.Reason(status):
		return statusWords(status)
	case run.Unchanged:
		return "done, no file changed"
	case run.NeverBegan:
		return statusWords(status) + " before it began"
	}
	return statusWords(status) + " (" + strings.ReplaceAll(reason, "_", " ") + ")"
}

// About describes a run in one line.
func About(r run.Record) string {
	d := runDataOf(r)
	return d.Status + ", " + d.Agent + ", " + text.Age(time.Since(r.Created)) + ": " + d.Summary.Why.Value
}
