// Package opencode is the driver of OpenCode.
//
// Permissions are passed on in OPENCODE_PERMISSION, merged with an existing value so that nothing is allowed that
// either forbids. The session of a run is recognised by a unique title; with --continue, it is the only one of the
// directory that was used meanwhile. A session, a denial or an error that is not in the CLI's own records is unknown.
package opencode

import (
	"bytes"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

const (
	permissionName = "OPENCODE_PERMISSION"
	titleFlag      = "--title="
)

type driver struct{ cli.Program }

// New returns the driver.
func New() agent.Driver {
	return driver{cli.Program{
		ID: "opencode",
		About: agent.About{
			Keeps:          keeps,
			Archive:        archive,
			Servers:        serverEntry,
			Title:          "OpenCode",
			Binary:         "opencode",
			Package:        "opencode-ai",
			Scratch:        []string{".*.so"}, // libraries that its program unpacks
			RepoEffect:     repoEffect,
			RepoFiles:      []string{".opencode", "opencode.json", "opencode.jsonc"},
			Traps:          traps,
			Settings:       []string{".opencode", "opencode.json", "opencode.jsonc"},
			Private:        []string{".local/share/opencode", ".config/opencode"},
			InstallCommand: "npm install -g opencode-ai@" + measured,
			Login:          "opencode auth login",
			LoginFiles:     []string{".local/share/opencode/auth.json"},
			Variables: []string{
				"OPENCODE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY",
				"GOOGLE_GENERATIVE_AI_API_KEY", "OPENROUTER_API_KEY",
			},
		},
		Native:  "opencode", // as in opencode-linux-x64
		Table:   table,
		OneShot: []string{"run"},
		NewDecoder: func() agent.Decoder {
			r := &reader{}
			r.lines.Parse = r.parse
			return r
		},
		// A login of any provider will do. The CLI also works without one, because one of its models needs none.
		Credentials: func(env agent.Env) cli.Credentials {
			return cli.Credentials{
				Files:     []string{cli.InHomeOr(env, "XDG_DATA_HOME", ".local/share", "opencode/auth.json")},
				Elsewhere: true,
			}
		},
	}}
}

// Command translates the flags. The prompt goes to standard input, because run quotes an argument with a space.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	t, err := cli.Translate(d.Matrix(s.Install.Version), s)
	if err != nil {
		return agent.Launch{}, nil, err
	}
	t.Env = permission(t.Env, s)
	if s.Dir != "" {
		t.Env = append(t.Env, "PWD="+s.Dir) // the CLI prefers PWD to its working directory
	}
	overridden(&t, s)
	if s.Resume != "" && !cli.Passed(s.Passthrough, "--session", "-s") {
		t.Args = append(t.Args, "--session="+s.Resume)
	}
	if s.Newest {
		t.Args = append(t.Args, "--continue")
	}
	if s.Mode == setting.OneShot && !resumes(s) && !cli.Passed(s.Passthrough, "--title", "--attach", "--mini") {
		t.Args = append(t.Args, titleFlag+uniqueTitle(s.Fresh))
	}
	if s.Rehearsal != nil {
		rehearse(&t, s)
	}
	l := d.Launch(s, t)
	l.Session, l.Refusals = named(s), refusals(s)
	return l, t.Warnings, nil
}

// resumes reports whether the run resumes an existing session.
func resumes(s agent.Spec) bool {
	return s.Resume != "" || s.Newest || cli.Passed(s.Passthrough, "--session", "-s", "--continue", "-c")
}

// named returns the session that a person named, or "". With --fork the run gets a new one.
func named(s agent.Spec) string {
	if cli.Passed(s.Passthrough, "--fork", "--attach") {
		return ""
	}
	if id, ok := cli.PassedValue(s.Passthrough, "--session", "-s"); ok {
		return id
	}
	if cli.Passed(s.Passthrough, "--continue", "-c") {
		return ""
	}
	return s.Resume
}

// uniqueTitle returns the title that identifies the session of this run. It looks like the CLI's own title for a new
// session, so the CLI replaces it as usual, and a person sees no difference. The date is today's; the time of day is
// derived from the new id.
func uniqueTitle(fresh string) string {
	at := time.Now().UTC()
	if fresh != "" {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(fresh))
		day := 24 * time.Hour
		at = at.Truncate(day).Add(time.Duration(hash.Sum64()%uint64(day.Milliseconds())) * time.Millisecond)
	}
	return untitled + at.Format("2006-01-02T15:04:05.000Z")
}

// overridden corrects the policies that the passthrough, a running server, or the repository overrides.
func overridden(t *cli.Translation, s agent.Spec) {
	if s.Shared.Approval.Value != setting.Yolo && approvesAll(s.Passthrough) {
		t.Override(agent.Approval, agent.None, "the passthrough's --auto answers what would be asked")
	}
	note, level := "", agent.None
	if cli.Passed(s.Passthrough, "--attach") {
		note = "the server that --attach names decides"
	} else if file := repoConfig(s); file != "" {
		note, level = "the repository's own "+filepath.Base(file)+" can allow more", agent.Nearest
	}
	if note == "" {
		return
	}
	for _, p := range t.Policies {
		if p.Feature == agent.Sandbox || p.Enforced == agent.None ||
			(p.Feature == agent.Approval && p.Wanted == string(setting.Yolo)) {
			continue
		}
		t.Override(p.Feature, level, note)
		if p.Origin == setting.Typed.String() {
			t.Warnings = append(t.Warnings, agent.Warning{
				Flag: "--" + p.Feature, Value: p.Wanted, Kind: agent.Closest, Message: note,
			})
		}
	}
}

// approvesAll reports whether the passthrough turns --auto on. The last flag counts.
func approvesAll(passthrough []string) bool {
	on := false
	for _, arg := range passthrough {
		switch arg {
		case "--":
			return on
		case "--auto", "--auto=true":
			on = true
		case "--no-auto", "--auto=false":
			on = false
		}
	}
	return on
}

// repoConfig returns a configuration that the CLI would read in the directory or above it, up to the root of the
// repository, or outside a repository up to the root of the file system. The user's own in the home directory does not
// count. If the variable turns off project configuration, only plugins count: the CLI loads them even then, and even
// with --pure.
func repoConfig(s agent.Spec) string {
	if s.Dir == "" {
		return ""
	}
	value := cli.First(s.Env, "OPENCODE_DISABLE_PROJECT_CONFIG")
	off := value == "1" || strings.EqualFold(value, "true")
	home := cli.First(s.Env, "HOME")
	for dir := range cli.Upward(s.Dir) {
		for _, name := range []string{"opencode.json", "opencode.jsonc", ".opencode"} {
			path := filepath.Join(dir, name)
			if cli.Exists(path) && (dir != home || name != ".opencode") && (!off || plugins(path)) {
				return path
			}
		}
		if cli.Exists(dir, ".git") {
			break
		}
	}
	return ""
}

// plugins reports whether a .opencode directory, or a configuration file, may load plugins. An unreadable file may.
func plugins(path string) bool {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return slices.ContainsFunc([]string{"plugin", "plugins", "opencode.json", "opencode.jsonc"},
			func(name string) bool { return cli.Exists(path, name) })
	}
	data, whole := cli.Head(path, longestConfig)
	return !whole || bytes.Contains(data, []byte("plugin"))
}

func refusals(s agent.Spec) []agent.Refusal {
	var out []agent.Refusal
	if model := s.Shared.Model; model.Value != "" && !strings.Contains(model.Value, "/") && s.Rehearsal == nil {
		out = append(out, agent.Refusal{
			Reason: "opencode takes a model as provider/model, and " + model.Value + " names no provider",
			Fix:    "name the provider too, as in --model openai/" + model.Value, Command: "opencode models",
		})
	}
	if s.Shared.Model.Typed() && cli.Passed(s.Passthrough, "--model", "-m") {
		out = append(out, agent.Refusal{
			Reason: "opencode takes --model only once", Fix: "leave out one of the two",
		})
	}
	return out
}

// traps returns repository files that the CLI may obey. There is no plugin in a directory, because that would install
// packages.
func traps() map[string]string {
	return map[string]string{
		"opencode.json": `{"plugin":["./trap.js"],"mcp":{"trap":{"type":"local",` +
			`"command":["sh","-c","touch ` + agent.Marks + `/mcp"],"enabled":true}},` +
			`"permission":{"edit":"ask","bash":"ask","*":"allow"}}`,
		"trap.js": `require("fs").writeFileSync("` + agent.Marks +
			`/plugin", "x"); export const Trap = async () => ({})` +
			"\n",
	}
}
