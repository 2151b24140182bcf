// Package opencode is all that we know of OpenCode.
//
// It promises that what a person allows is passed on as OPENCODE_PERMISSION, merged with one that is set already so
// that nothing gets wider, and that the session of a run is recognised by a mark of that run alone, never by its time
// or place. It refuses to name a session, a denial or an error that the CLI's own records do not show: then they are
// unknown.
package opencode

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
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
			Title:          "OpenCode",
			Binary:         "opencode",
			Package:        "opencode-ai",
			Obeys:          obeys,
			Traps:          traps,
			Settings:       []string{".opencode", "opencode.json", "opencode.jsonc"},
			Private:        []string{".local/share/opencode", ".config/opencode"},
			InstallCommand: "npm install -g opencode-ai@" + measured,
			Login:          "opencode auth login",
			Variables:      []string{"OPENCODE_*"},
		},
		Native:  "opencode", // opencode-linux-x64 and its like
		Table:   table,
		OneShot: []string{"run"},
	}}
}

// Command translates. A prompt is read from standard input, because run wraps an argument that contains a space in
// quotes.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	t := cli.Translate(d.Matrix(s.Install.Version), s)
	t.Env = permission(t.Env, s)
	if s.Dir != "" {
		t.Env = append(t.Env, "PWD="+s.Dir) // the CLI believes it more than the directory that it is started in
	}
	elsewhere(&t, s)
	if s.Resume != "" && !cli.Passed(s.Passthrough, "--session", "-s") {
		t.Args = append(t.Args, "--session="+s.Resume)
	}
	if s.Mode == setting.OneShot && !resumes(s) && !cli.Passed(s.Passthrough, "--title", "--attach", "--mini") {
		t.Args = append(t.Args, titleFlag+mark(s.Fresh))
	}
	var remove []string
	if s.Rehearsal != nil {
		remove = rehearsal(s, &t)
	}
	l := d.Launch(s, t)
	l.Env = cli.Environ(s.Env, t.Env, remove...)
	l.Session = named(s)
	l.Refusals = refusals(s)
	return l, t.Warnings, nil
}

// resumes reports whether the run resumes an existing session.
func resumes(s agent.Spec) bool {
	return s.Resume != "" || cli.Passed(s.Passthrough, "--session", "-s", "--continue", "-c")
}

// named is the session that a person named. With --fork it is only the beginning of another.
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

// mark is the title by which the session of this run is found. It has the form of the title that the CLI itself gives
// to a new session: so it is replaced by a written one as ever, and a person sees no difference. The day is today's;
// the time of day is made of the new id.
func mark(fresh string) string {
	day := time.Now().UTC()
	if fresh == "" {
		return "New session - " + day.Format("2006-01-02T15:04:05.000Z")
	}
	const msPerDay = 24 * 60 * 60 * 1000
	var n uint64
	for _, c := range fresh { // FNV-1a: the id is random, all that is needed is a number of it
		n = (n ^ uint64(c)) * 1099511628211
	}
	start := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC)
	at := start.Add(time.Duration(n%msPerDay) * time.Millisecond)
	return "New session - " + at.Format("2006-01-02T15:04:05.000Z")
}

// elsewhere corrects the policies where something else than our environment decides: the passthrough, a server that was
// started before, or a repository.
func elsewhere(t *cli.Translation, s agent.Spec) {
	if s.Shared.Approval.Value != setting.Yolo && approvesAll(s.Passthrough) {
		for i, p := range t.Policies {
			if p.Feature == agent.Approval {
				t.Policies[i].Enforced, t.Policies[i].Note = agent.None,
					"the passthrough's --auto answers what would be asked"
			}
		}
	}
	note := ""
	level := agent.None
	if cli.Passed(s.Passthrough, "--attach") {
		note = "the server that --attach names decides"
	} else if file := repoConfig(s); file != "" {
		note, level = "the repository's own "+filepath.Base(file)+" can allow more", agent.Nearest
	}
	if note == "" {
		return
	}
	for i, p := range t.Policies {
		if p.Feature == agent.Sandbox || p.Enforced == agent.None ||
			(p.Feature == agent.Approval && p.Wanted == string(setting.Yolo)) {
			continue
		}
		t.Policies[i].Enforced, t.Policies[i].Note = level, note
		if p.Origin == setting.Typed.String() {
			t.Warnings = append(t.Warnings, agent.Warning{
				Flag: "--" + p.Feature, Value: p.Wanted, Kind: agent.Closest,
				Message: note,
			})
		}
	}
}

// approvesAll says whether the passthrough has --auto, in a form that switches it on. The last one counts.
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

// repoConfig finds a configuration that the CLI would take from the directory or one above it, up to the root of the
// repository; where there is no repository it looks in all of them. The user's own below the home directory does not
// count. Where the variable switches it off, only plugins are left: the CLI loads them all the same, with --pure too.
func repoConfig(s agent.Spec) string {
	if s.Dir == "" {
		return ""
	}
	off := switched(s.Env, "OPENCODE_DISABLE_PROJECT_CONFIG")
	home, _ := cli.Lookup(s.Env, "HOME")
	for dir := filepath.Clean(s.Dir); ; dir = filepath.Dir(dir) {
		for _, name := range []string{"opencode.json", "opencode.jsonc", ".opencode"} {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil && (dir != home || name != ".opencode") && (!off || plugins(path)) {
				return path
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// switched says whether a variable has a value that the CLI takes for yes.
func switched(env []string, name string) bool {
	value, _ := cli.Lookup(env, name)
	return value == "1" || strings.EqualFold(value, "true")
}

// plugins says whether a directory .opencode, or a file, may bring some. What cannot be read, or is too long to be,
// may.
func plugins(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	if info.IsDir() {
		for _, name := range []string{"plugin", "plugins", "opencode.json", "opencode.jsonc"} {
			if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
				return true
			}
		}
		return false
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return true
	}
	data, err := os.ReadFile(path)
	return err != nil || bytes.Contains(data, []byte("plugin"))
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

// Classify judges by what the events show.
func (d driver) Classify(x agent.Exit, events []event.Event) *fault.Fault {
	return cli.Judge(x, cli.EvidenceOf(events), d.UsageCodes...)
}

// traps are what a repository says to it. A plugin in a directory of its own is not among them: it installs packages.
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
