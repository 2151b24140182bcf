package agents

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"omniagent/internal/llm/modelserver"
)

// What opencode is asked for in a pair does not depend on the sandbox, since it has none: with and without, the effect
// is the same.
func opencodeScenarios() []scenario {
	list := []scenario{
		{"prompt", []string{
			"pair prompt/-", "pair prompt/workspace-write", "pair prompt/off",
			"approval=prompt one-shot", "denials one-shot", "denial",
		}, opencodePrompt},
		{"prompt, then passthrough", []string{
			"pair prompt/-, then passthrough", "pair prompt/workspace-write, then passthrough",
			"pair prompt/off, then passthrough",
		}, opencodePromptPassed},
		{"auto-edit", []string{
			"pair auto-edit/-", "pair auto-edit/workspace-write", "pair auto-edit/off",
			"approval=auto-edit one-shot",
		}, opencodeEdits},
		{"auto-edit, then passthrough", []string{
			"pair auto-edit/-, then passthrough", "pair auto-edit/workspace-write, then passthrough",
			"pair auto-edit/off, then passthrough",
		}, opencodeEditsPassed},
		{
			"yolo",
			[]string{"pair yolo/-", "pair yolo/workspace-write", "pair yolo/off", "approval=yolo one-shot"},
			opencodeYolo,
		},
		{"yolo, then passthrough", []string{
			"pair yolo/-, then passthrough", "pair yolo/workspace-write, then passthrough",
			"pair yolo/off, then passthrough",
		}, opencodeYoloPassed},
		{"sandbox", []string{"sandbox=*"}, opencodeSandbox},
		{"model and forms", []string{
			"model one-shot", "output-schema *", "output=text one-shot",
			"output=json one-shot", "output=stream-json one-shot",
		}, opencodeModel},
		{"web and questions", []string{"web=on one-shot", "web=off one-shot", "ask one-shot"}, opencodeWeb},
		{"sessions", []string{"resume *", "session-id *", "records *"}, opencodeSessions},
		{"acp", []string{"acp *"}, opencodeACP},
		{"prompt at the limit", []string{"prompt at the limit"}, opencodeLong},
		{"prompt beyond the limit", []string{"prompt beyond the limit"}, opencodeTooLong},
	}
	return slices.Concat(list, opencodeFailures(), opencodeScreens(), opencodeHostile())
}

// opencodeRecord is what else of the report these scenarios look at.
type opencodeRecord struct {
	Session  *string  `json:"session_id"`
	Told     bool     `json:"denials_known"`
	Denials  []any    `json:"denials"`
	Records  []string `json:"records"`
	Policies []struct{ Feature, Enforced, Note string }
	Warnings []struct{ Flag, Kind, Message string }
}

func (b *bench) opencodeRecord() opencodeRecord {
	b.t.Helper()
	var r opencodeRecord
	data, err := os.ReadFile(filepath.Join(b.home, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// enforced compares how far the last report says that a policy holds.
func (b *bench) opencodeEnforced(feature, want string) {
	b.t.Helper()
	for _, p := range b.opencodeRecord().Policies {
		if p.Feature == feature && p.Enforced != want {
			b.t.Errorf("%s is told to be enforced: %s (%s), want %s", feature, p.Enforced, p.Note, want)
		}
	}
}

// refusedAtOnce is what comes of a shell command that is asked for first: nobody answers, and the turn is over.
func refusedAtOnce() effect { return effect{code: 3} }

func everything() effect { return effect{shell: true, outside: true, write: true} }

func opencodePrompt(b *bench) {
	b.does(refusedAtOnce())
	r := b.opencodeRecord()
	if !r.Told || len(r.Denials) != 1 || len(r.Records) != 1 || !strings.HasSuffix(r.Records[0], "opencode.db") {
		b.t.Errorf("%+v", r)
	}
	b.opencodeEnforced("approval", "yes")
	b.opencodeEnforced("sandbox", "no")
	o := b.does(refusedAtOnce(), "--approval", "prompt", "--sandbox", "workspace-write")
	if !strings.Contains(o.stderr, "--sandbox workspace-write is ignored") {
		b.t.Error(o.stderr)
	}
	b.does(refusedAtOnce(), "--approval", "prompt", "--sandbox", "off")
	if o = b.run(`[{"write":{"path":"w.txt","content":"x"}},{"say":"on"}]`); o.code != 3 || b.took("w.txt") ||
		strings.Contains(o.stdout, "on") {
		b.t.Errorf("%+v", o)
	}
}

// The passthrough's --auto answers what would be asked, and the report does not claim that the approval holds.
func opencodePromptPassed(b *bench) {
	b.does(everything(), "--", "--auto")
	b.opencodeEnforced("approval", "no")
	b.does(everything(), "--approval", "prompt", "--sandbox", "workspace-write", "--", "--auto")
	b.opencodeEnforced("approval", "no")
	b.does(refusedAtOnce(), "--sandbox", "off", "--", "--agent", "plan")
	b.opencodeEnforced("approval", "yes")
}

func opencodeEdits(b *bench) {
	o := b.does(refusedAtOnce(), "--auto-edit")
	if !strings.Contains(o.stderr, "no sandbox holds what the agent does without asking") {
		b.t.Error(o.stderr)
	}
	b.opencodeEnforced("approval", "yes")
	o = b.does(refusedAtOnce(), "--auto-edit", "--sandbox", "workspace-write")
	if !strings.Contains(o.stderr, "--sandbox workspace-write is ignored") {
		b.t.Error(o.stderr)
	}
	o = b.does(refusedAtOnce(), "--auto-edit", "--sandbox", "off")
	if strings.Contains(o.stderr, "warning") {
		b.t.Error(o.stderr)
	}
	// What it may do comes first here.
	o = b.run(`[{"write":{"path":"w.txt","content":"x"}},{"shell":"touch made.txt"},{"say":"on"}]`, "--auto-edit")
	if o.code != 3 || !b.took("w.txt") || b.took("made.txt") {
		b.t.Errorf("%+v", o)
	}
}

func opencodeEditsPassed(b *bench) {
	b.does(everything(), "--auto-edit", "--", "--auto")
	b.opencodeEnforced("approval", "no")
	b.does(refusedAtOnce(), "--auto-edit", "--sandbox", "workspace-write", "--", "--agent", "plan")
	b.does(everything(), "--auto-edit", "--sandbox", "off", "--", "--auto")
}

func opencodeYolo(b *bench) {
	b.does(everything(), "--yolo")
	b.opencodeEnforced("approval", "yes")
	b.does(everything(), "--yolo", "--sandbox", "workspace-write")
	b.opencodeEnforced("sandbox", "no")
	b.does(everything(), "--yolo", "--sandbox", "off")
}

// The plan agent refuses to edit, and says so to the model: the turn goes on.
func opencodeYoloPassed(b *bench) {
	b.does(effect{code: 3, shell: true, outside: true}, "--yolo", "--", "--agent", "plan")
	b.does(effect{code: 3, shell: true, write: true}, "--yolo", "--sandbox", "workspace-write", "--", "--no-auto")
	b.opencodeEnforced("approval", "yes")
	b.does(effect{code: 3, shell: true, write: true}, "--yolo", "--sandbox", "off", "--", "--auto=false")
}

// opencodeSandbox: there is none, in both modes, and who insists is told before anything is started.
func opencodeSandbox(b *bench) {
	bare := b.sent("-p", "x", "--yolo")
	for _, value := range []string{"workspace-write", "off"} {
		if got := b.sent("-p", "x", "--yolo", "--sandbox", value); !slices.Equal(opencodeUnmarked(got),
			opencodeUnmarked(bare)) {
			b.t.Errorf("%s is sent: %q", value, got)
		}
	}
	o := b.run("", "--sandbox", "workspace-write", "--strict")
	if o.code != 2 || !strings.Contains(o.stderr, "opencode has no sandbox") || o.report.AgentExit != nil {
		b.t.Errorf("%+v", o)
	}
	for value, code := range map[string]int{"workspace-write": 2, "off": 0} {
		s := b.open("", "--sandbox", value, "--strict", "--trace-translate=only")
		if code == 2 {
			s.sees("opencode has no sandbox")
		}
		s.sees("OA_TRANSLATION")
		if got := s.left(); got != code {
			b.t.Errorf("%s at a terminal: %d", value, got)
		}
	}
	if o = b.run(`[{"shell":"grep -c Seccomp.*2 /proc/self/status; touch `+b.base+
		`/outside.txt"},{"say":"it said ${result}"}]`, "--yolo"); o.code != 0 ||
		!strings.Contains(o.stdout, "it said 0") || !b.took(b.base+"/outside.txt") {
		b.t.Errorf("%+v", o)
	}
}

// opencodeUnmarked is without the mark of a run.
func opencodeUnmarked(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--title=") })
}

func opencodeModel(b *bench) {
	o := b.run(`[{"json":{"n":7}}]`, "--model", "rehearsal/other", "--output-schema",
		`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	if o.code != 0 || o.stdout != "{\"n\":7}\n" || o.report.Model != "rehearsal/other" ||
		strings.Contains(strings.Join(o.report.Argv, " "), "schema") {
		b.t.Errorf("%+v", o)
	}
	o = b.run(`[{"shell":"touch made.txt"},{"say":"the answer"}]`, "--output", "stream-json", "--yolo")
	types := opencodeTypes(b, o.stdout)
	if o.code != 0 || strings.Contains(o.stderr, "warning") ||
		!slices.Equal(types, []string{"step_start", "tool_use", "step_finish", "step_start", "text", "step_finish"}) {
		b.t.Errorf("%q %+v", types, o)
	}
	b.put(filepath.Join(b.home, ".config/omniagent/config.toml"), "[shim]\nmodel = \"rehearsal/configured\"\n")
	o = b.run("", "--output", "json", "--", "-m", "rehearsal/passed")
	if types = opencodeTypes(b, o.stdout); o.code != 0 || o.report.Model != "rehearsal/passed" ||
		!slices.Equal(types, []string{"step_start", "text", "step_finish"}) {
		b.t.Errorf("the passthrough names another model than the configuration: %+v", o)
	}
	if !strings.Contains(o.stderr, "--output json becomes the closest that there is: one JSON object a line") {
		b.t.Error(o.stderr)
	}
	if o = b.run("", "--output", "json", "--strict"); o.code != 2 || o.stdout != "" {
		b.t.Errorf("%+v", o)
	}
	o = b.run("", "--model", "rehearsal/typed", "--", "-m", "rehearsal/passed")
	if o.code != 1 || !strings.Contains(o.stderr, "hint: opencode takes --model only once") {
		b.t.Errorf("typed twice: %+v", o)
	}
}

// opencodeTypes are what the lines of JSON are.
func opencodeTypes(b *bench, stdout string) []string {
	b.t.Helper()
	var types []string
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		var l struct{ Type string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			b.t.Errorf("no JSON: %s", line)
		}
		types = append(types, l.Type)
	}
	return types
}

// page counts how often it is fetched.
func (b *bench) page() (url string, fetched *atomic.Int32) {
	fetched = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("a page of its own"))
	}))
	b.t.Cleanup(server.Close)
	return server.URL, fetched
}

// opencodeWeb: with prompt too, a page is fetched without asking where the web is on. Off, no tool for it is offered,
// and none for questions.
func opencodeWeb(b *bench) {
	url, fetched := b.page()
	script := `[{"web":"` + url + `/x"},{"ask":"Which one?"},{"say":"read: ${result}"}]`
	o := b.run(script, "--web")
	if o.code != 0 || fetched.Load() != 1 || !strings.Contains(o.stdout, "a page of its own") ||
		!strings.Contains(o.stdout, "no ask tool is offered") {
		b.t.Errorf("%d %+v", fetched.Load(), o)
	}
	o = b.run(script)
	if o.code != 0 || fetched.Load() != 1 || !strings.Contains(o.stdout, "no web tool is offered") ||
		!strings.Contains(o.stdout, "no ask tool is offered") {
		b.t.Errorf("%d %+v", fetched.Load(), o)
	}
}

// opencodeModelOf starts a model server that a person's own configuration names: without a rehearsal the sessions stay.
// It returns the server.
func (b *bench) opencodeModelOf(script string) *modelserver.Server {
	b.t.Helper()
	backend, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		b.t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{Key: "sk-a-persons-own-key"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = server.Close() })
	b.put(filepath.Join(b.home, ".config/opencode/opencode.json"), `{"model":"own/m","small_model":"own/m","autoupdate":false,"agent":{"title":{"disable":true}},
		"provider":{"own":{"npm":"@ai-sdk/openai-compatible","name":"own","options":{"baseURL":"`+server.URL()+`/v1","apiKey":"sk-a-persons-own-key"},"models":{"m":{"name":"m"}}}}}`)
	b.env = append(b.env, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_SHARE=1")
	return server
}

// opencodeSessions: one run, one that continues it, and the terminal interface that does. The id is opencode's own.
func opencodeSessions(b *bench) {
	server := b.opencodeModelOf(`[{"say":"heard ${input}"}]`)
	first := b.start(nil, "-p", "the first thing")
	r := b.opencodeRecord()
	if first.code != 0 || !strings.HasPrefix(first.report.Session, "ses_") || first.report.Model != "own/m" ||
		first.report.Answered == nil || !*first.report.Answered ||
		!slices.Equal(r.Records, []string{filepath.Join(b.home, ".local/share/opencode/opencode.db")}) {
		b.t.Fatalf("%+v %+v", first, r)
	}
	second := b.start(nil, "-p", "the second thing", "--", "--session="+first.report.Session)
	asked := server.Requests()
	if second.code != 0 || second.report.Session != first.report.Session ||
		!strings.Contains(string(asked[len(asked)-1].Raw), "the first thing") {
		b.t.Errorf("%+v", second)
	}
	s := b.sit(program, "--agent", b.agent, "--report", filepath.Join(b.home, "report.json"), "--",
		"--session="+first.report.Session)
	s.sees("heard the second thing")
	s.opencodeLeaves()
	if r = b.opencodeRecord(); r.Session == nil || *r.Session != first.report.Session || len(r.Records) != 0 {
		b.t.Errorf("%+v", r)
	}
	if o := b.start(nil, "-p", "on", "--", "-s", "ses_none"); o.code != 1 {
		b.t.Errorf("a session that is not there: %+v", o)
	}
}
