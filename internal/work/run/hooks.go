package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
)

// Hooks are the user's own programs around a run, each with its arguments.
type Hooks struct {
	// Before and After get the run as JSON on standard input. If Before exits with 2, the attempt is forbidden. Any
	// other exit code except 0, and any of After, is a warning.
	Before, After []string
	Notify        []string // runs at a question and at the end; has only notifyClock
	Programs      process.Programs
}

const (
	hookClock   = time.Minute
	notifyClock = 10 * time.Second
)

// moment is the input of a hook.
type moment struct {
	Event   string   `json:"hook_event_name"` // PreRun, PostRun, Notify
	Run     string   `json:"run_id"`
	Tool    string   `json:"tool_name"` // external_cli:AGENT
	Agent   string   `json:"agent"`
	Attempt int      `json:"attempt"`
	State   State    `json:"status"`
	Mode    string   `json:"approval"`
	Dir     string   `json:"cwd"`
	Task    string   `json:"task"`
	Result  *Result  `json:"result,omitempty"`
	Open    []string `json:"questions,omitempty"`
}

func (r *Run) moment(event, agent string) moment {
	m := moment{
		Event: event, Run: r.ID, Tool: "external_cli:" + agent, Agent: agent, Attempt: len(r.Attempts), State: r.State,
		Mode: string(r.Approval), Dir: r.Dir, Task: r.Text, Result: r.Result,
	}
	for _, q := range r.Open() {
		m.Open = append(m.Open, q.Text)
	}
	return m
}

// before asks the user's hook whether an attempt may begin.
func (o *Owner) before(ctx context.Context, agent string) error {
	code, words, err := o.Hooks.call(ctx, o.Hooks.Before, hookClock, o.Run.moment("PreRun", agent))
	if words != "" {
		words = ": " + words
	}
	switch {
	case err != nil:
		return fault.New(fault.Blocked, "run.hooks.pre did not say whether %s may begin", agent).Because(err)
	case code == 2:
		f := fault.New(fault.Blocked, "run.hooks.pre forbids it%s", words).With("hook", "run.hooks.pre")
		f.Suggestion = "omniagent config get run.hooks.pre"
		return f
	case code != 0:
		o.Log("run.hooks.pre ended with %d%s", code, words)
	}
	return nil
}

// after tells the user's hooks that the run is over, or waits for an answer.
func (o *Owner) after(agent string) {
	o.call("run.hooks.post", o.Hooks.After, hookClock, o.Run.moment("PostRun", agent))
	o.notify(agent)
}

func (o *Owner) notify(agent string) {
	o.call("run.notify", o.Hooks.Notify, notifyClock, o.Run.moment("Notify", agent))
}

// call runs a hook that decides nothing. A failure is only logged.
func (o *Owner) call(setting string, argv []string, clock time.Duration, m moment) {
	code, words, err := o.Hooks.call(context.Background(), argv, clock, m)
	if err != nil {
		o.Log("%s: %v", setting, err)
	} else if code != 0 {
		o.Log("%s ended with %d: %s", setting, code, words)
	}
}

// Tell runs the Notify program for a conversation that waits for a person. dir is its workspace; what says why it
// waits.
func (h Hooks) Tell(ctx context.Context, conversation, agent, dir, what string) error {
	m := moment{
		Event: "Notify", Run: conversation, Tool: "external_cli:" + agent, Agent: agent, State: NeedsInput, Dir: dir,
		Task: what,
	}
	code, words, err := h.call(ctx, h.Notify, notifyClock, m)
	if err == nil && code != 0 {
		err = fmt.Errorf("it ended with %d: %s", code, words)
	}
	return err
}

// call runs a program. words is the first line of its standard error, or else of its standard output.
func (h Hooks) call(ctx context.Context, argv []string, clock time.Duration, m moment) (code int, words string,
	err error,
) {
	if len(argv) == 0 {
		return 0, "", nil
	}
	input, err := json.Marshal(m)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, clock)
	defer cancel()
	env := append(process.Environment(nil, process.EnvOptions{}),
		"OMNIAGENT_RUN_ID="+m.Run, "OMNIAGENT_RUN_STATUS="+string(m.State), "OMNIAGENT_RUN_AGENT="+m.Agent)
	result, err := h.Programs.Also(m.Dir).Run(ctx, process.Spec{
		Argv: argv, Env: env, Stdin: input, MaxOutput: 64 << 10,
	})
	if err != nil {
		return 0, "", err
	}
	if result.Signal != "" {
		return 0, "", errors.New("it was ended by " + result.Signal)
	}
	words, _, _ = strings.Cut(strings.TrimSpace(string(result.Stderr)), "\n")
	if words == "" {
		words, _, _ = strings.Cut(strings.TrimSpace(string(result.Stdout)), "\n")
	}
	return result.ExitCode, text.OneLine(words, 300), nil
}
