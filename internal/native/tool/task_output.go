package tool

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/walls/shell"
)

const (
	usualTaskWait   = 30_000 // milliseconds
	longestTaskWait = 600_000
)

// TaskOutput returns a tool that reads the output of a background task, in the form that hosts of Claude Code show. It
// can wait for the task to end.
func TaskOutput(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "TaskOutput", Kind: event.Other, With: "Bash"})
	return s.plan(func(in *input) (Action, error) {
		id, limit := in.text("task_id", false), in.whole("timeout", usualTaskWait, 0)
		block := in.raw("block") == nil || in.flag("block")
		return Action{
			// The command was allowed, so reading its output needs no question.
			Title: "Read the output of " + text.Name(clip(cmp.Or(id, "the newest background task"))),
			Run: func(ctx context.Context) Result {
				if env.Shell == nil {
					return noCommands()
				}
				return readTask(ctx, env.Shell, id, block, time.Duration(min(limit, longestTaskWait))*time.Millisecond)
			},
		}, nil
	})
}

func readTask(ctx context.Context, s Shell, id string, block bool, limit time.Duration) Result {
	if jobs := s.Jobs(); id == "" && len(jobs) > 0 {
		id = jobs[len(jobs)-1].ID
	}
	if block {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		s.Wait(ctx, id)
	}
	job, err := s.Output(id, nil)
	if err != nil {
		return failed(err)
	}
	retrieved := "success"
	if job.Running {
		retrieved = map[bool]string{true: "timeout", false: "not_ready"}[block]
	}
	tags := fmt.Sprintf("<retrieval_status>%s</retrieval_status>\n<task_id>%s</task_id>\n<task_type>local_bash"+
		"</task_type>\n<status>%s</status>\n", retrieved, job.ID, taskStatus(job))
	if !job.Running {
		tags += fmt.Sprintf("<exit_code>%d</exit_code>\n", job.Outcome.Exit)
	}
	printed := strings.TrimRight(printedText(job.Outcome), "\n")
	return Result{
		Text: tags + "<output>\n" + printed + "\n</output>", Masked: job.Outcome.Masked, Waits: job.Running,
	}
}

// taskStatus returns the state of a task in one word.
func taskStatus(job shell.Job) string {
	switch o := job.Outcome; {
	case job.Running:
		return "running"
	case o.Reason == shell.Stopped, o.Signal != "":
		return "killed"
	case o.Exit != 0:
		return "failed"
	}
	return "completed"
}
