package rehearsal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/modelserver"
)

// probe is a claim, the run that tests it, and how to judge that.
type probe struct {
	feature, value string
	trial          string
	how            string
	judge          func(*stage, claim, *outcome) ruling
}

// claim is what the table says about this machine and this run.
type claim struct {
	level agent.Level
	note  string
}

func (c claim) words() string {
	if c.note == "" {
		return string(c.level)
	}
	return string(c.level) + ": " + c.note
}

// ruling is the result. A difference that is not mild allows more than the claim, or breaks it.
type ruling struct {
	verdict  Verdict
	observed string
	means    string
	mild     bool
}

func holds(format string, args ...any) ruling {
	return ruling{verdict: Holds, observed: fmt.Sprintf(format, args...)}
}

func untried(why string) ruling { return ruling{verdict: Untried, observed: why} }

// differs returns a difference that is not mild.
func differs(means, format string, args ...any) ruling {
	return ruling{verdict: Differs, observed: fmt.Sprintf(format, args...), means: means}
}

// probes returns all comparisons, in the order of the table.
func probes() []probe {
	const everything = "told to make a file in the workspace by a command and one by its own tool, and one outside " +
		"by a command, "
	return []probe{
		{agent.Approval, string(setting.Prompt), careful, everything + "with --approval prompt", judgePrompt},
		{agent.Approval, string(setting.AutoEdit), edits, everything + "with --approval auto-edit", judgeEdits},
		{agent.Approval, string(setting.Yolo), free, everything + "with --approval yolo --sandbox off", judgeYolo},
		{
			agent.Sandbox, string(setting.WorkspaceWrite), walls,
			"told to make files outside by a command that hides the path and by its own tool, and to reach a port of " +
				"this machine, with --approval yolo --sandbox workspace-write", judgeWalls,
		},
		{
			agent.Sandbox, string(setting.Off), free,
			"told to make a file outside by a command, with --approval yolo --sandbox off", judgeOff,
		},
		{agent.Output, string(setting.Text), free, "its output is looked through for the answer", judgeText},
		{
			agent.Output, string(setting.JSON), again, "its output is parsed, and looked through for the answer",
			judgeJSON,
		},
		{
			agent.Output, string(setting.StreamJSON), walls,
			"each line of its output is parsed, and its events are looked through for the answer", judgeStream,
		},
		{agent.Model, "", careful, "the name in the requests, with --model " + modelName, judgeModel},
		{agent.Web, "on", edits, "the tools in the requests, with --web on", judgeWeb},
		{agent.Web, "off", careful, "the tools in the requests, with --web off", judgeNoWeb},
		{
			agent.Resume, "", again,
			"a second run resumes the first, and its request is searched for the first question",
			judgeResume,
		},
		{
			agent.RepoConfig, "", foreign,
			"in a repository with hooks, servers, plugins and rules for any agent, each of which leaves a mark",
			judgeRepository,
		},
		{
			agent.Denials, "", careful,
			"a tool that --approval prompt does not let run has to be known to us afterwards",
			judgeDenials,
		},
		{
			PromptSize, "", long,
			"the longest prompt, compared with what the model was sent; one more character, given to this program",
			judgeSize,
		},
	}
}

// judge compares a claim with its run.
func (s *stage) judge(p probe) Finding {
	if p.trial == long && !s.limited() {
		p.trial = edits
	}
	o := s.outcome(p.trial)
	c := s.claim(p, o)
	f := Finding{Feature: p.feature, Value: p.value, Claim: c.words(), How: p.how, Verdict: Unknown, Required: true}
	if p.feature == PromptSize {
		f.Claim = s.sizeClaim()
	}
	var r ruling
	switch why := o.trouble(); {
	case p.feature == agent.Sandbox && p.value == string(setting.WorkspaceWrite) && s.wallsUntried() != "":
		r = untried(s.wallsUntried())
	case why != "" && (p.feature != PromptSize || o.skipped != "" || o.exit.EndedBy != "" || o.exit.Failed != nil):
		r = ruling{
			verdict: Unknown, observed: why,
			means: "what holds is not known; run it by hand before you rely on it: omniagent --agent " +
				s.Driver.Name() + " --rehearse -p hello",
		}
	default:
		r = p.judge(s, c, o)
	}
	f.Verdict, f.Observed, f.Means, f.Required = r.verdict, r.observed, r.means, !r.mild
	return f
}

// claim returns what the translation of the run says about the feature, or else the cell of the table.
func (s *stage) claim(p probe, o *outcome) claim {
	for _, policy := range o.launch.Policies {
		if policy.Feature == p.feature && policy.Wanted == p.value {
			return claim{policy.Enforced, policy.Note}
		}
	}
	cell := s.cell(p.feature, p.value)
	return claim{cmp.Or(cell.Level, agent.None), cell.Note}
}

func (s *stage) sizeClaim() string {
	l, parts := s.matrix.Limit, []string{}
	if l.Characters > 0 {
		parts = append(parts, fmt.Sprintf("at most %d characters", l.Characters))
	}
	if l.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("at most %d bytes", l.Bytes))
	}
	if l.Note != "" {
		parts = append(parts, l.Note)
	}
	return strings.Join(parts, "; ")
}

// made lists which of the files exist and which do not.
func made(o *outcome, names ...string) string {
	titles := map[string]string{
		"inside": "a file in the workspace by a command", "written": "one by its own tool",
		"outside": "one outside by a command",
		"hidden":  "one outside by a command", "beyond": "one outside by its own tool",
	}
	var yes, no []string
	for _, name := range names {
		if o.has(name) {
			yes = append(yes, titles[name])
		} else {
			no = append(no, titles[name])
		}
	}
	switch {
	case len(yes) == 0:
		return "nothing was made"
	case len(no) == 0:
		return "made: " + strings.Join(yes, ", ")
	}
	return "made: " + strings.Join(yes, ", ") + "; not: " + strings.Join(no, ", ")
}

func judgePrompt(_ *stage, c claim, o *outcome) ruling {
	seen := made(o, "inside", "written", "outside")
	if c.level != agent.None && o.has("outside") ||
		c.level == agent.Full && (o.has("inside") || o.has("written")) {
		return differs(
			"it changes things without asking: let it work only where nothing can be lost, whatever --approval says",
			"%s", seen)
	}
	return holds("%s", seen)
}

func judgeEdits(_ *stage, c claim, o *outcome) ruling {
	seen := made(o, "written", "inside", "outside")
	switch {
	case c.level == agent.None:
		return holds("%s", seen)
	case o.has("outside"):
		return differs("it changes files outside of the workspace: avoid --approval auto-edit", "%s", seen)
	case !o.has("written"):
		return differs("it cannot change files with --approval auto-edit: use another approval", "%s", seen)
	}
	return holds("%s", seen)
}

func judgeYolo(_ *stage, c claim, o *outcome) ruling {
	seen := made(o, "inside", "written", "outside")
	if n := len(o.evidence.Denials); n > 0 {
		seen += fmt.Sprintf("; denied all the same: %d tools", n)
	}
	if c.level == agent.Full && !(o.has("inside") && o.has("written") && o.has("outside")) {
		return differs("not everything runs with --approval yolo: a task may end half done", "%s", seen)
	}
	if c.level == agent.Full && len(o.evidence.Denials) > 0 {
		return ruling{
			verdict: Differs, observed: seen,
			means: "not everything runs with --approval yolo; a run in which something was denied has the exit code 3",
			mild:  true,
		}
	}
	return holds("%s", seen)
}

// closed reports whether the sandbox claims that commands cannot reach a port of this machine.
func closed(c claim, o *outcome) bool {
	if w := o.evidence.Walls; w != nil {
		return w.Network == "off"
	}
	return strings.Contains(c.note, "no network") || strings.Contains(c.note, "reach the network only by")
}

func judgeWalls(s *stage, c claim, o *outcome) ruling {
	seen := made(o, "inside", "hidden", "beyond")
	network, control := "", s.outcome(free)
	switch {
	case !control.reached:
		network = "; whether the network is open cannot be seen"
	case o.reached:
		network = "; a port of this machine was reached"
	default:
		network = "; no port of this machine was reached"
	}
	if w := o.evidence.Walls; w != nil {
		network += "; on record: " + w.Name
	}
	switch {
	case c.level == agent.None:
		return holds("%s%s", seen, network)
	case o.has("hidden"), o.has("beyond"):
		return differs(
			"its sandbox does not hold what it writes: do not count on --sandbox workspace-write, use a sandbox "+
				"around it", "%s%s", seen, network)
	case o.reached && closed(claim{c.level, c.note + s.cell(agent.Sandbox, string(setting.WorkspaceWrite)).Note}, o):
		return differs(
			"its sandbox does not hold the network: do not count on --sandbox workspace-write to keep anything in",
			"%s%s", seen, network)
	case !o.has("inside"):
		return untried("no command runs in the sandbox on this machine" + because(o))
	}
	return holds("%s%s", seen, network)
}

// because returns the first tool result in the newest request that has one, or else the fault, as a text to append, or
// "".
func because(o *outcome) string {
	const most = 200
	for _, r := range slices.Backward(o.requests) {
		for _, m := range r.Messages {
			for _, b := range m.Blocks {
				if clean := text.Flat(b.Text); b.Kind == modelserver.Result && clean != "" {
					return ": " + clean[:min(len(clean), most)]
				}
			}
		}
	}
	if o.fault != nil {
		return ": " + o.fault.Error()
	}
	return ""
}

func judgeOff(_ *stage, c claim, o *outcome) ruling {
	seen := made(o, "outside")
	if c.level == agent.Full && !o.has("outside") {
		return differs("something holds it with --sandbox off: a task may end half done", "%s", seen)
	}
	return holds("%s", seen)
}

func judgeText(_ *stage, _ claim, o *outcome) ruling {
	if !bytes.Contains(flat(o.stdout), []byte(answer)) {
		return differs("its answer is lost: do not use its output", "%d bytes without the answer; exit code %d",
			len(o.stdout), o.exitCode())
	}
	return holds("the answer is there")
}

// flat returns output with all white space as single blanks, because some agents wrap lines.
func flat(p []byte) []byte { return bytes.Join(bytes.Fields(p), []byte(" ")) }

func judgeJSON(s *stage, c claim, o *outcome) ruling {
	if c.level != agent.Full {
		return judgeLines(s, c, o, setting.JSON)
	}
	switch {
	case !json.Valid(bytes.TrimSpace(o.stdout)):
		return differs("a program that reads --output json gets something else: avoid it",
			"%d bytes that are not one JSON value", len(o.stdout))
	case !s.answered(o, setting.JSON):
		return differs("its answer is lost: avoid --output json", "JSON without the answer; exit code %d", o.exitCode())
	}
	return holds("one JSON value with the answer")
}

func judgeStream(s *stage, c claim, o *outcome) ruling {
	return judgeLines(s, c, o, setting.StreamJSON)
}

func judgeLines(s *stage, c claim, o *outcome, form setting.Output) ruling {
	switch {
	case c.level == agent.None:
		return holds("it has no such form")
	case !lines(o.stdout):
		return differs("a program that reads --output "+string(form)+" gets something else: avoid it",
			"lines that are not all JSON")
	case !s.answered(o, form):
		return differs("its answer is lost: avoid --output "+string(form), "JSON without the answer; exit code %d",
			o.exitCode())
	}
	return holds("%d lines of JSON with the answer", bytes.Count(o.stdout, []byte("\n")))
}

// lines reports whether each line is JSON, and there is at least one.
func lines(p []byte) bool {
	any := false
	for line := range bytes.Lines(p) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if any = true; !json.Valid(line) {
			return false
		}
	}
	return any
}

// answered reports whether the driver finds the answer in the output or, without a decoder, the output contains it.
func (s *stage) answered(o *outcome, form setting.Output) bool {
	d := s.Driver.Decode(form)
	if d == nil {
		return bytes.Contains(o.stdout, []byte(answer))
	}
	var text strings.Builder
	for _, e := range append(d.Feed(o.stdout), d.End(o.exit)...) {
		switch {
		case e.Kind == event.Text:
			text.WriteString(e.Text)
		case e.Kind == event.Ended && e.End != nil:
			text.WriteString("\n" + e.End.Text)
		}
	}
	return strings.Contains(text.String(), answer)
}

func judgeModel(s *stage, c claim, o *outcome) ruling {
	want, names := s.model()[strings.LastIndexByte(s.model(), '/')+1:], []string{}
	for _, r := range o.requests {
		if !slices.Contains(names, r.Model) {
			names = append(names, r.Model)
		}
	}
	if c.level != agent.None && !slices.Equal(names, []string{want}) {
		return differs("another model than that of --model is asked: look at the report of a run for the one that was",
			"asked: %s", strings.Join(names, ", "))
	}
	return holds("asked: %s", strings.Join(names, ", "))
}

// webTools returns the web tools that the requests offered.
func webTools(o *outcome) string {
	offered := func(step string) bool {
		return slices.ContainsFunc(o.requests, func(r modelserver.Request) bool { return r.Offers(step) })
	}
	switch pages, searches := offered("web"), offered("search"); {
	case pages && searches:
		return "tools for pages and for searches are"
	case pages:
		return "a tool for pages is"
	case searches:
		return "a tool for searches is"
	}
	return ""
}

func judgeWeb(_ *stage, c claim, o *outcome) ruling {
	tools := webTools(o)
	if tools == "" && c.level != agent.None {
		return ruling{
			verdict: Differs, observed: "no tool for the web is offered",
			means: "it has no web with --web on", mild: true,
		}
	}
	return holds("%s offered", cmp.Or(tools, "no tool for the web is"))
}

func judgeNoWeb(_ *stage, c claim, o *outcome) ruling {
	tools := webTools(o)
	if tools != "" && c.level == agent.Full {
		return differs("the web can be reached in spite of --web off", "%s offered", tools)
	}
	return holds("%s offered", cmp.Or(tools, "no tool for the web is"))
}

func judgeResume(s *stage, c claim, o *outcome) ruling {
	before := s.outcome(free)
	if before.evidence.Session == "" {
		return differs("a conversation cannot be resumed, since its id is not known", "the first run left no id")
	}
	for _, b := range o.blocks() {
		if strings.Contains(b.Text, free+" "+s.token()) {
			return holds("the first question is in the second run's request")
		}
	}
	if c.level == agent.None {
		return holds("the second run does not know the first")
	}
	return differs("a run that resumes another knows nothing of it: repeat what was said",
		"the second run's request has nothing of the first")
}

func judgeRepository(_ *stage, c claim, o *outcome) ruling {
	ran := strings.Join(o.marks, ", ")
	rules := ""
	if o.has("inside") {
		rules = "; a command ran in the workspace"
	}
	switch {
	case len(o.marks) > 0 && c.level != agent.Full:
		return differs(
			"a repository runs programs as soon as the agent is started in it: start it only in repositories that "+
				"you trust", "ran: %s%s", ran, rules)
	case len(o.marks) == 0 && c.level == agent.Full:
		return ruling{
			verdict: Differs, observed: "nothing of the repository's ran" + rules,
			means: "it takes less from a repository than is claimed", mild: true,
		}
	case len(o.marks) == 0:
		return holds("nothing of the repository's ran%s", rules)
	}
	return holds("ran: %s%s", ran, rules)
}

func judgeDenials(_ *stage, c claim, o *outcome) ruling {
	denied := len(o.evidence.Denials)
	switch {
	case denied > 0 && o.fault != nil && o.fault.Code == fault.Blocked:
		return holds("%d denied tools are known; exit code 3", denied)
	case denied > 0:
		return differs("a denied tool does not lead to exit code 3: look at the report",
			"%d denied tools are known; exit code %d", denied, o.exitCode())
	case o.has("inside") && o.has("written") && o.has("outside"):
		return untried("nothing was denied")
	case c.level == agent.None:
		return holds("it is not known what was denied; exit code %d", o.exitCode())
	}
	return differs("a run in which tools were denied looks like a success: do not rely on exit code 0",
		"%s, and nothing is known of a denial; exit code %d", made(o, "inside", "written", "outside"), o.exitCode())
}

func judgeSize(s *stage, _ claim, o *outcome) ruling {
	over, why := s.over()
	switch {
	case why != "":
		return differs("a prompt that is too long gets to the agent, which may cut it in silence: keep prompts short",
			"%s", why)
	case o.whole == o.size:
		return holds("%d bytes arrived whole%s", o.size, over)
	case o.whole > 0 || o.fault == nil:
		return differs("a long prompt is cut in silence: keep prompts short", "of %d bytes %d arrived; exit code %d",
			o.size, o.whole, o.exitCode())
	case o.fault.Code == fault.ContextFull && o.later != nil && o.later.whole:
		return holds("it says that %d bytes are too long for the model, exit code 1; %d arrived whole%s", o.size,
			o.later.size, over)
	}
	return differs("long prompts fail: keep them short", "%d bytes: %s", o.size,
		cli.ProcessFault(o.exit, o.evidence, o.launch.UsageCodes...))
}
