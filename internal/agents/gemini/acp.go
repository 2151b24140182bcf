package gemini

import (
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/wire/jsonrpc"
)

// acp returns the launch of a process that speaks ACP. It chooses the session over the wire.
func (d driver) acp(s agent.Spec) (agent.Launch, error) {
	d.OneShot = []string{"--acp"}
	files := recentCopies(s, time.Now().UTC())
	s.Mode, s.Resume, s.Fresh = setting.OneShot, "", ""
	l, _, err := d.Command(s)
	l.Files = append(l.Files, files...)
	return l, err
}

const (
	minute      = "2006-01-02T15-04" // as in the names of transcripts
	longestChat = 64 << 20
)

// recentCopies returns copies of the session's transcripts that began in the current minute. Before the CLI loads a
// session, it opens a new transcript, named after the minute. If the session's own transcript has that name, the CLI
// empties it, and then finds nothing to load. It finds and continues the copy, whose name is a minute earlier.
func recentCopies(s agent.Spec, now time.Time) (copies []agent.File) {
	chats := configPath(s.Env, "tmp", "*", "chats")
	if len(s.Resume) < 8 || strings.ContainsAny(s.Resume, `/\*?[`) || chats == "" {
		return nil
	}
	for _, at := range []time.Time{now, now.Add(time.Minute)} { // the minute when the CLI starts
		name := func(at time.Time) string { return "session-" + at.Format(minute) + "-" + s.Resume[:8] + ".jsonl" }
		found, _ := filepath.Glob(filepath.Join(chats, name(at)))
		for _, path := range found {
			if data, err := workspace.ReadFile(path, longestChat); err == nil {
				copies = append(copies, agent.File{
					Path: filepath.Join(filepath.Dir(path), name(at.Add(-time.Minute))), Data: data, Keep: true,
				})
			}
		}
	}
	return copies
}

// exitOf returns the exit code of a command that failed, which is the first line of its result.
func exitOf(output string) *int { return cli.ExitCode(output, "Command exited with code: ") }

// acpFault translates an error response, whose code is the HTTP status of the model's API.
func acpFault(e *jsonrpc.Error) *fault.Fault {
	if e.Code < 400 {
		return nil
	}
	return failure(e.Message, e.Code)
}
