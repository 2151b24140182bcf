package agents

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func claudeScreens() []scenario {
	return []scenario{
		{"screen under prompt", []string{
			"approval=prompt interactive", "model interactive", "web=off interactive", "session-id interactive",
			"records interactive", "denials interactive",
			"screen: flags visible", "screen: dialog under prompt", "screen: resize",
		}, claudeScreenPrompt},
		{"screen under yolo", []string{
			"approval=yolo interactive", "sandbox=off interactive",
			"screen: no dialog under yolo",
		}, claudeScreenYolo},
		{"screen in the sandbox", []string{"sandbox=workspace-write interactive"}, claudeScreenSandbox},
		{"screen resumed", []string{
			"approval=auto-edit interactive", "resume interactive", "ask interactive",
			"web=on interactive",
		}, claudeScreenResumed},
		{"screen without", []string{
			"output=text interactive", "output=json interactive",
			"output=stream-json interactive", "output-schema interactive", "acp interactive",
		}, claudeScreenWithout},
		{"screen suspended", []string{"screen: suspend"}, claudeScreenSuspended},
	}
}

const claudeAsks = "Do you want to proceed?"

func claudeScreenPrompt(b *bench) {
	server := b.claudeLogin(`[{"shell":"python3 -c \"open('inside.txt','w')\""},{"say":"finished now"}]`)
	b.claudeTrust()
	const id = "22222222-3333-4444-8555-666666666666"
	s := b.sit(program, "--agent", "claude", "--model", "haiku", "--", "--session-id", id)
	s.sees("Haiku")
	s.sees("manual mode on")
	s.enters("please do it")
	s.sees(claudeAsks)
	r := claudeRequest(b, server.Requests())
	if !strings.HasPrefix(r.Model, "claude-haiku-") || claudeOffers(r, "WebFetch") || claudeOffers(r, "WebSearch") {
		b.t.Errorf("model %s, tools %+v", r.Model, r.Tools)
	}
	s.forget()
	s.resize(24, 80)
	s.sees(claudeAsks)
	s.claudePresses("\x1b", "Interrupted")
	if b.took("inside.txt") {
		b.t.Error("it ran unasked")
	}
	s.claudeLeaves()
	text, err := os.ReadFile(filepath.Join(b.home, ".claude", "projects", claudeSlug(b.work), id+".jsonl"))
	if err != nil || !bytes.Contains(text, []byte(`"toolDenialKind"`)) {
		b.t.Errorf("%v %s", err, text)
	}
}

func claudeScreenYolo(b *bench) {
	outside := filepath.Join(b.base, "outside.txt")
	s := b.open(`[{"shell":"touch inside.txt"},{"shell":"touch `+outside+`"},{"say":"finished now"}]`, "--yolo")
	s.sees("bypass permissions on")
	s.enters("please do it")
	s.sees("finished now")
	s.lacks(claudeAsks)
	s.lacks("recognize the model")
	if !b.took("inside.txt") || !b.took(outside) {
		b.t.Error("it did not do all")
	}
	s.claudeLeaves()
}

func claudeScreenSandbox(b *bench) {
	needPrograms(b, "bwrap", "socat")
	outside := filepath.Join(b.base, "outside.txt")
	s := b.open(`[{"shell":"python3 -c \"open('inside.txt','w')\""},{"shell":"touch `+outside+
		`"},{"say":"finished now"}]`, "--auto-edit")
	s.sees("accept edits on")
	s.enters("please do it")
	s.sees("finished now")
	s.lacks(claudeAsks)
	if !b.took("inside.txt") || b.took(outside) {
		b.t.Error("a command could not write inside of the workspace, or could outside")
	}
	s.claudeLeaves()
}

func claudeScreenResumed(b *bench) {
	const id = "33333333-4444-4555-8666-777777777777"
	b.claudeLogin(`[{"say":"heard ${input}"}]`)
	if o := b.start(nil, "-p", "a first question", "--", "--session-id", id); o.code != 0 {
		b.t.Fatalf("%+v", o)
	}
	server := b.claudeLogin(
		`[{"write":{"path":"written.txt","content":"x"}},{"ask":"which colour?"},{"shell":"python3 -c \"open('inside.txt','w')\""},{"say":"finished now"}]`)
	b.claudeTrust()
	s := b.sit(program, "--agent", "claude", "--auto-edit", "--sandbox", "off", "--web", "--", "--resume", id)
	s.sees("heard a first question")
	s.sees("accept edits on")
	s.enters("please do it")
	s.sees("which colour?")
	s.lacks("Do you want to create")
	if !b.took("written.txt") {
		b.t.Error("the file was not written")
	}
	r := claudeRequest(b, server.Requests())
	if !claudeOffers(r, "WebFetch") || !claudeOffers(r, "WebSearch") ||
		!bytes.Contains(r.Raw, []byte("heard a first question")) {
		b.t.Errorf("%+v", r.Tools)
	}
	s.sees("Enter to select")
	// a command that is not an edit
	s.presses("\r", 5*time.Second, "the question is answered", func() bool { return s.shows(claudeAsks) })
	s.sees(claudeAsks)
	if b.took("inside.txt") {
		b.t.Error("it ran unasked")
	}
	s.presses("\r", 5*time.Second, "the command is allowed", func() bool { return s.shows("finished now") })
	if !b.took("inside.txt") {
		b.t.Error("allowed, and it did not run")
	}
	s.claudeLeaves()
}

func claudeScreenWithout(b *bench) {
	s := b.open("", "--strict", "--output", "text")
	s.sees("manual mode on")
	s.lacks("is ignored")
	s.claudeLeaves()
	for _, form := range []string{"json", "stream-json"} {
		s := b.open("", "--strict", "--trace-translate", "--output", form)
		s.sees("--output " + form + " is ignored")
		if code := s.left(); code != 2 {
			b.t.Errorf("%s: %d", form, code)
		}
		s.lacks("--output-format")
	}
	s = b.open("", "--output-schema", `{"type":"object"}`)
	s.sees("--output-schema needs a prompt")
	if code := s.left(); code != 2 {
		b.t.Errorf("schema: %d", code)
	}
	s = b.open("", "--", "--acp")
	s.sees("unknown option '--acp'")
	if code := s.left(); code != 1 {
		b.t.Errorf("acp: %d", code)
	}
}

func claudeScreenSuspended(b *bench) {
	s := b.shell()
	const modes = "stty -g; echo mode''s are above"
	s.enters(modes)
	s.sees("modes are above")
	before := claudeModes(s)
	s.sees("ready>")
	s.types("omniagent --agent claude " + b.script(`[{"say":"finished now"}]`) + "\r")
	s.sees("manual mode on")
	s.presses("\x1a", 5*time.Second, "the key stops it", func() bool { return s.shows("Stopped") })
	s.sees("Stopped")
	s.sees("ready>")
	if s.group() != s.cmd.Process.Pid {
		b.t.Error("the shell is not in front")
	}
	s.enters("echo usa''ble")
	s.sees("usable")
	s.sees("ready>")
	s.enters("fg")
	s.sees("manual mode on")
	s.enters("please do it")
	s.sees("finished now")
	for s.claudePresses("\x03", "again to exit", "ready>") != "ready>" {
		s.types("\x03")
		if s.claudeShows(5*time.Second, "ready>") != "" {
			break
		}
	}
	s.enters(modes)
	s.sees("modes are above")
	if after := claudeModes(s); before == "" || after != before {
		b.t.Errorf("the terminal's modes were %q and are %q", before, after)
	}
}

// claudeModes is the last line that stty -g wrote.
func claudeModes(s *screen) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Split(strings.ReplaceAll(s.raw, "\r", ""), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Count(lines[i], ":") > 10 && !strings.Contains(lines[i], " ") {
			return lines[i]
		}
	}
	return ""
}

// claudeLeaves ends it as a person does: the second key has to follow the first while it is asked for.
func (s *screen) claudeLeaves() {
	s.t.Helper()
	s.forget()
	for ended := false; !ended; {
		s.claudePresses("\x03", "again to exit")
		s.types("\x03")
		select {
		case <-s.done:
			ended = true
		case <-time.After(5 * time.Second):
		}
	}
	if code := s.left(); code != 0 {
		s.t.Errorf("it ended with %d", code)
	}
}

// claudePresses presses keys until one of the texts is there: those that come while the screen is not ready are lost.
func (s *screen) claudePresses(keys string, wanted ...string) string {
	s.t.Helper()
	for range 5 {
		s.types(keys)
		if found := s.claudeShows(10*time.Second, wanted...); found != "" {
			return found
		}
	}
	return s.sees(wanted...)
}

// claudeShows waits a while for one of the texts, and returns it.
func (s *screen) claudeShows(while time.Duration, wanted ...string) string {
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text := s.letters()
		for _, w := range wanted {
			if strings.Contains(text[min(s.seen, len(text)):], letters(w)) {
				return s.sees(w)
			}
		}
	}
	return ""
}

// claudeTrust answers the question for the workspace beforehand.
func (b *bench) claudeTrust() {
	b.t.Helper()
	path := filepath.Join(b.home, ".claude.json")
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.put(path, strings.TrimSuffix(string(text), "}")+`,"projects":{"`+b.work+
		`":{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`)
}
