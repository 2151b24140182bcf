package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/text"
)

// The stand-in behaves like Claude Code 2.1.329 called with -p, when its model wants to run a command that needs a
// question: the command is not run, the model says so in its answer, the exit code is 0, and the transcript has the
// denial.

const (
	standInName = "claude"
	standInPart = "OMNIAGENT_DEMO_PART" // must contain the name, so that a link alone does not start a stand-in
)

// The words of the scene.
const (
	testsPrompt = "run the tests"
	testsAnswer = "I was not allowed to run the tests here."
)

// IsStandIn reports whether this process was started as a stand-in.
func IsStandIn(args []string, lookup func(string) (string, bool)) bool {
	part, _ := lookup(standInPart)
	return part == standInName && len(args) > 0 && strings.TrimSuffix(filepath.Base(args[0]), ".exe") == standInName
}

// StandIn runs the stand-in and returns the exit code.
func StandIn(args []string, lookup func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	prompt, session := "", ""
	for i, arg := range args {
		switch id, ok := strings.CutPrefix(arg, "--session-id="); {
		case ok:
			session = id
		case arg == "-p" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			prompt = args[i+1]
		}
	}
	if prompt == "" {
		data, _ := io.ReadAll(io.LimitReader(stdin, 1<<20))
		prompt = string(data)
	}
	session = cmp.Or(session, ident.UUID())
	if err := keepTranscript(lookup, session, prompt); err != nil {
		clean, _ := text.Clean(err.Error())
		fmt.Fprintln(stderr, "the stand-in for claude:", clean)
		return 1
	}
	fmt.Fprintln(stdout, testsAnswer)
	return 0
}

// keepTranscript writes the record of the session to the place and in the form of Claude Code.
func keepTranscript(lookup func(string) (string, bool), session, prompt string) error {
	home, _ := lookup("HOME")
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	slug := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
	place := filepath.Join(home, ".claude", "projects", slug)
	if err := os.MkdirAll(place, 0o700); err != nil {
		return err
	}
	type object = map[string]any
	common := object{
		"cwd": dir, "sessionId": session, "version": "2.1.329", "isSidechain": false,
		"userType": "external", "entrypoint": "sdk-cli",
	}
	assistant := func(id string, block object) object {
		return object{"type": "assistant", "message": object{
			"id": id, "role": "assistant", "model": "claude-opus-5-5",
			"content": []object{block},
		}}
	}
	records := []object{
		{
			"type": "user", "message": object{"role": "user", "content": prompt}, "promptSource": "sdk",
			"permissionMode": "default",
		},
		assistant("msg_1", object{
			"type": "tool_use", "id": "toolu_1", "name": "Bash",
			"input": object{"command": "make test"},
		}),
		{
			"type": "user", "toolDenialKind": "user-rejected",
			"message": object{"role": "user", "content": []object{{
				"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true,
				"content": "This command requires approval",
			}}},
			"permissionDecision": object{
				"decision": "reject", "source": "config",
				"reasonCode": "bashMiss:no-rule-match",
			},
		},
		assistant("msg_2", object{"type": "text", "text": testsAnswer}),
	}
	var lines []byte
	for _, r := range records {
		maps.Copy(r, common)
		r["uuid"], r["timestamp"] = ident.UUID(), time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	return os.WriteFile(filepath.Join(place, session+".jsonl"), lines, 0o600)
}
