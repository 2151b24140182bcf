package runs

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/term/terminal"
	"omniagent/internal/walls/policy"
	"omniagent/internal/work/run"
)

const maxTask = 8 << 20

func (p commands) run() *contract.Command {
	return p.runCommand(contract.Command{
		Path: "run", Summary: "hand a task to an agent, and get a reliable result", Here: true,
		Detail: "The agent works with nobody watching. On a terminal you are asked what it asks; anywhere else, or " +
			"if you leave it,\na question ends the call with 4 and waits for omniagent answer. Nothing is ever " +
			"answered for a person.\n" +
			"With --detach the call returns at once. docs/run.md has recipes.",
		Params: append(append([]contract.Param{
			{Name: "task", Short: "p", Kind: contract.Text, MaxLen: maxTask, Help: "what to do; else standard input"},
			{
				Name: "agent", Kind: contract.Name,
				Help: "agent, or native; claude,codex: the second if the first cannot start",
			},
			{Name: "model", Short: "m", Kind: contract.Name, Help: "model, in the agent's own words"},
			{
				Name: "require", Kind: contract.Text, Repeat: true, Help: "KEY=QUESTION: what it has to know",
			},
			{Name: "answer", Kind: contract.Text, Repeat: true, Help: "KEY=TEXT: what is known"},
			{Name: "answer-from", Kind: contract.Text, Repeat: true, Help: "KEY=FILE: the same"},
			{
				Name: "transport", Kind: contract.Enum, Default: agent.ByChoice, Enum: []string{
					"auto", agent.ByACP,
					agent.ByStream,
				},
				Help: "how to talk to the agent; auto: what suits it, see docs/run.md",
			},
			flags.AddDir(),
			{Name: "detach", Kind: contract.Bool, Help: "return at once; a process carries it out"},
			{
				Name: "wait-quota", Kind: contract.Bool, Help: "wait until a limit of the service is lifted",
			},
			idleParam("longest silence of the agent; default: run.idle_timeout"),
		}, slices.Concat(flags.Rehearsal(), runForks(), flags.Approvals())...), runStart()...),
		Rules: append(flags.RunRehearsalRules(), []contract.Rule{
			{If: "race", Not: []string{"agent", "detach", "batch", "parallel"}},
			{If: "batch", Not: []string{"task", "detach"}},
			{If: checkOutside, Then: []string{"check"}},
			{If: "parallel", Then: []string{"batch", "fork"}},
		}...),
		Instead: p.inFork,
		Stdin:   &contract.Stdin{Format: "text"},
		Output:  contract.TypeOf[handedOver](),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is done; with --detach, begun"},
			{Code: contract.PartialFailure, When: "see data.runs", Changed: contract.Some},
			{Code: contract.NotFound, When: "no such agent here"},
			{Code: contract.Unavailable, When: "the service does not answer", Changed: contract.Some},
		},
		Examples: []contract.Example{
			{
				Description: "See how it goes, without a key or a login",
				Command:     "omniagent run --rehearse -p 'Write a greeting.'",
			},
			{
				Description: "Let Codex mend the tests",
				Command:     "omniagent run --agent codex --auto-edit -p 'Mend the tests.'",
			},
			{
				Description: "Ask for what is missing before anything begins",
				Command:     "omniagent run --agent claude -p 'Use my colour.' --require colour='Which one?'",
			},
			{
				Description: "Come back later",
				Command:     "omniagent run --agent claude,codex --detach -p 'Update the docs.'",
			},
		},
		Validate: func(c *contract.Call) []fault.Problem { return append(validateRun(c), p.validateAPI(c)...) },
		Run:      p.runTask,
	})
}

// runForks returns the flags for forks, for several runs at once, and for the check of their results.
func runForks() []contract.Param {
	return []contract.Param{
		forks.Flag(),
		{Name: "check", Kind: contract.Text, Help: "command that must succeed afterwards"},
		{Name: checkOutside, Kind: contract.Bool, Help: "run --check without walls, as you would"},
		{Name: "race", Kind: contract.Name, Help: "A,B*2, each in a fork: docs/races.md"},
		{Name: "batch", Kind: contract.File, Help: "tasks, as a Markdown list"},
		{Name: "parallel", Kind: contract.Int, Min: 1, Max: mostEntries, Help: "tasks of --batch at once, with --fork"},
		{Name: "network", Kind: contract.Name, Help: "what the fork reaches: off, internet, packages, hosts, or on"},
	}
}

// runStart returns the flags that every command has that starts or continues the agent of a run.
func runStart() []contract.Param {
	return append(modelParams(), flags.Sandbox(), flags.Undo())
}

// modelParams returns the flags for the native agent's model API.
func modelParams() []contract.Param {
	return []contract.Param{
		{Name: "provider", Short: "P", Kind: contract.Name, Help: "model API of the native agent"},
		{Name: "api-base", Kind: contract.Name, Value: "URL", Help: "address of that API"},
	}
}

// runCommand adds the declarations shared by the commands that carry out a run.
func (p commands) runCommand(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes, c.Danger = contract.Events, "1.0.0", []string{}, contract.Mutating
	c.LongRunning, c.DryRun = true, true
	c.Network = flags.ModelAPI()
	c.Network.Agents = true
	c.Clock = timeOf
	if c.Output == nil {
		c.Output = contract.TypeOf[runData]()
	}
	c.Again = presentResult
	c.Volatile = []string{"run_id", "duration_ms", "waited_ms", "session_id", "fingerprint"}
	c.Children = append(c.Children, p.AgentPrograms()...)
	c.Files = stores.ConversationFiles(stores.RunFiles(), stores.AllowlistFile())
	c.Background = background()
	c.Job = &contract.Job{Descriptor: contract.TypeOf[runData]()}
	some := contract.Some
	c.Exits = append(c.Exits,
		contract.Exit{Code: contract.GeneralError, When: "it failed, or nobody saw the end", Changed: some},
		contract.Exit{
			Code: contract.PreconditionFailed, When: "a person has to answer data.questions", Changed: some,
		},
		contract.Exit{Code: contract.Conflict, When: "it is over, or another process has it"},
		contract.Exit{
			Code: contract.PermissionDenied, When: "a tool was denied, or the agent is not allowed", Changed: some,
		},
		contract.Exit{Code: contract.AuthRequired, When: "not logged in", Changed: some},
		contract.Exit{Code: contract.PaymentRequired, When: "the quota is used up", Changed: some},
		contract.Exit{Code: contract.TimedOut, When: "it took too long, or fell silent", Changed: some},
		contract.Exit{Code: contract.RateLimited, When: "the service asks for fewer calls", Changed: some},
	)
	return &c
}

// background declares the process of a detached run.
func background() *contract.Background {
	return &contract.Background{CleanupCommand: "omniagent runs cancel RUN", MaxLifetime: 30 * 24 * time.Hour}
}

func validateRun(c *contract.Call) []fault.Problem {
	var problems []fault.Problem
	for _, name := range []string{"require", "answer", "answer-from"} {
		for _, pair := range c.Strings(name) {
			if key, value, ok := strings.Cut(pair, "="); !ok || session.CheckID(key) != nil || value == "" {
				problems = append(problems,
					contract.Wrong(name, fault.ArgError, pair, "--%s takes KEY=VALUE", name))
			}
		}
	}
	if c.Given("check") && strings.TrimSpace(c.String("check")) == "" { // a script's variable may be empty
		problems = append(problems, fault.Problem{
			Param: "check", Code: fault.ArgError, Message: "--check needs a command",
		})
	}
	err := policy.CheckNetwork(c.String("network"))
	if err == nil && c.Given("network") && !c.Bool("fork") && !c.Given("race") && stores.ForkAround(c) == nil {
		err = fault.New(fault.ArgError, "--network needs --fork or --race")
	}
	if err != nil {
		problems = append(problems, contract.Wrong("network", fault.ArgError, "", "%s", fault.Of(err).Message))
	}
	from := "agent"
	if c.Given("race") {
		from = "race"
	}
	_, err = agentWords(c)
	problems = append(problems, contract.ProblemOf(from, c.String(from), err)...)
	if c.Given("task") {
		problems = append(problems, contract.ProblemOf("task", "", checkTask(c.String("task")))...)
	}
	if _, _, err := flags.ApprovalOf(c); err != nil {
		problems = append(problems, contract.Wrong("approval", fault.ArgError, "", "%s", fault.Of(err).Message))
	}
	return problems
}

// validateAPI refuses a model API that does not exist, and the choice of one where no agent of the call takes it.
func (p commands) validateAPI(c *contract.Call) (problems []fault.Problem) {
	name := c.String("provider")
	if name != "" && !slices.Contains(p.Providing(), name) {
		problems = contract.ProblemsOf("provider", name,
			provider.Options{APIs: p.APIs, Agents: p.Providing()}.Check(name))
	}
	names, err := agentWords(c)
	if err != nil || slices.Contains(names, native.Name) {
		return problems
	}
	for _, flag := range []string{"provider", "api-base"} {
		if c.Given(flag) {
			problems = append(problems, contract.Wrong(flag, fault.ArgError, c.String(flag),
				"--%s is for the native agent; %s chooses its own model API", flag, strings.Join(names, ",")))
		}
	}
	return problems
}

// taskOf returns the task of a call of run, whose text may come from standard input.
func (p commands) taskOf(ctx context.Context, c *contract.Call) (run.Task, error) {
	t, err := p.baseTask(c)
	if err != nil {
		return t, err
	}
	t.Text, t.Detached, t.WaitQuota = c.String("task"), c.Bool("detach"), c.Bool("wait-quota")
	if in, is := c.Host.Stdin.(*os.File); is && c.Given("task") && terminal.Unread(in) {
		c.Warn("STDIN_UNREAD", "standard input is not read, since -p is given")
	}
	if in := stores.ForkAround(c); in != nil {
		t.Fork, t.ForkID, t.Network = in.Name, in.ID, c.String("network")
	}
	if way := c.String("transport"); way != agent.ByChoice {
		t.Transport = way
	}
	if t.Text == "" && !c.Given("task") {
		in, err := c.Input(ctx)
		if err != nil {
			return t, err
		}
		data, err := io.ReadAll(io.LimitReader(in, flags.LongestMessage+1))
		_ = in.Close()
		switch {
		case err != nil:
			return t, fault.New(fault.StdinEmpty, "the task cannot be read from standard input").Because(err)
		case len(data) > flags.LongestMessage:
			return t, flags.MessageTooLong()
		}
		t.Text = string(data)
	}
	return t, checkTask(t.Text)
}

func checkTask(text string) error {
	if strings.TrimSpace(text) != "" {
		return nil
	}
	return fault.New(fault.ArgError, "there is no task").Hint("omniagent run --agent claude -p 'What to do'")
}

// baseTask returns the task of a call without its text: agents, directory and limits.
func (p commands) baseTask(c *contract.Call) (run.Task, error) {
	t := run.Task{
		Model: c.String("model"), Dir: c.Dir(),
		Timeout: timeOf(c), Idle: flags.ClockOf(c, "idle-timeout", "run.idle_timeout"),
		First: c.Config.Duration("run.first_output"), Retries: int(c.Config.Int("run.retries")),
		Check: c.String("check"), CheckFor: c.Config.Duration("run.check_timeout"),
		CheckOutside: c.Bool(checkOutside),
		Rehearse:     c.Bool("rehearse"), Script: c.Path("script"),
	}
	keepFlags(c, &t)
	for _, dir := range flags.AddedDirs(c) {
		t.Dirs = append(t.Dirs, pathname.Real(dir))
	}
	approval, _, err := flags.ApprovalOf(c)
	if err != nil {
		return t, err
	}
	t.Approval = cmp.Or(approval, setting.Default)
	names, err := agentWords(c)
	if err != nil {
		return t, err
	}
	for _, name := range names {
		known, err := p.AgentNamed(c, name)
		if err != nil {
			return t, err
		}
		t.Agents = append(t.Agents, known.Name())
	}
	return t, nil
}

// keepFlags copies the flags of runStart from the call into the task, and those that the call does not give from the
// task into the call, so that a continued run keeps the flags that it was started with. If the call names another
// provider, the address of the earlier one is dropped.
func keepFlags(c *contract.Call, t *run.Task) {
	if c.Given("provider") && c.String("provider") != t.Provider {
		t.Base = ""
	}
	for name, kept := range map[string]*string{
		"provider": &t.Provider, "api-base": &t.Base, "undo": &t.Undo, "sandbox": (*string)(&t.Sandbox),
	} {
		c.Keep(name, *kept)
		*kept = c.String(name)
	}
}

// agentWords returns the names of agents in --race or --agent, or else of the configured agent.
func agentWords(c *contract.Call) (names []string, err error) {
	if c.Given("race") {
		return contestants(c.String("race"))
	}
	for name := range strings.SplitSeq(cmp.Or(c.String("agent"), c.Config.String("agent"), native.Name), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fault.New(fault.ArgError, "--agent has no name").Hint("omniagent agents list")
	}
	return names, nil
}

// idleParam returns --idle-timeout.
func idleParam(help string) contract.Param {
	return contract.Param{Name: "idle-timeout", Kind: contract.Duration, Help: help}
}

// timeOf returns the time limit of a run.
func timeOf(c *contract.Call) time.Duration {
	return flags.ClockOf(c, "timeout", "run.timeout", "timeout")
}

// answersOf returns the answers of --answer and --answer-from, by key.
func answersOf(c *contract.Call) (known map[string]string, err error) {
	known = map[string]string{}
	for _, pair := range c.Strings("answer") {
		key, value, _ := strings.Cut(pair, "=")
		known[key] = value
	}
	for _, pair := range c.Strings("answer-from") {
		key, file, _ := strings.Cut(pair, "=")
		data, err := os.ReadFile(c.Abs(file))
		if err != nil {
			return nil, fault.New(fault.FileMissing, "--answer-from %s: %s cannot be read", key, file).Because(err)
		}
		known[key] = strings.TrimRight(string(data), "\r\n")
	}
	return known, nil
}

// addQuestions adds the questions of --require to a run, and the answers in known. An answer without a question gets
// one.
func addQuestions(c *contract.Call, r *run.Run, known map[string]string) error {
	for _, pair := range c.Strings("require") {
		key, words, _ := strings.Cut(pair, "=")
		r.Ask(key, words)
	}
	for key, value := range known {
		if !slices.ContainsFunc(r.Questions, func(q run.Question) bool { return q.ID == key }) {
			r.Ask(key, key)
		}
		if err := r.Answer(key, run.Answer{Text: value, At: time.Now().UTC(), By: os.Getpid()}); err != nil {
			return err
		}
	}
	return nil
}

// inFork runs a call of run again in a new fork. It leaves out detached runs, whose process enters the fork by itself,
// and races and batches, in which each run gets its own fork.
func (p commands) inFork(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (
	status int, done bool, err error,
) {
	if c.DryRun() || c.Bool("detach") || c.Given("batch") || c.Given("race") {
		return 0, false, nil
	}
	return forks.RerunInNew(ctx, c, signals, c.String("network"), p.refusesRun)
}

// refusesRun returns the error with which a call of run would fail, as far as that is known before standard input is
// read. It changes nothing.
func (p commands) refusesRun(ctx context.Context, c *contract.Call) error {
	task, err := p.baseTask(c)
	if err == nil && c.Given("task") {
		err = checkTask(c.String("task"))
	}
	if err == nil {
		_, err = answersOf(c)
	}
	if err == nil {
		err = p.checkUnwalled(c)
	}
	if err != nil {
		return err
	}
	if task.Rehearse { // a rehearsal needs neither a login nor omniagent agents allow
		return nil
	}
	var first error
	for _, name := range task.Agents { // one that can start is enough: the others are its replacements
		err := p.Refuses(ctx, c, launch.Request{
			Agent: name, Provider: c.String("provider"), Base: c.String("api-base"),
			Spec: agent.Spec{
				Env: os.Environ(), Dir: task.Dir, Shared: setting.Shared{Model: parts.FromFlag(task.Model)},
			},
		}, true)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// inItsFork returns an opener for the conversations of a run. It refuses if the run has a fork and this is not it.
func inItsFork(o parts.Opener, r *run.Run) conversation.Opener {
	return func(ctx context.Context, name string, s agent.Spec, sv agent.Services) (*conversation.Conversation, error) {
		if id, _ := stores.OwnFork(o.Call); r.ForkID != "" && id != r.ForkID {
			return nil, fault.New(fault.Conflicting, "%s can only go on in its fork %s", r.ID, r.Fork).
				Hint("omniagent runs show %s", r.ID)
		}
		return o.Converse(ctx, name, s, sv)
	}
}
