//go:build unix

package walk

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryStream makes the checks with the commands whose standard output is a protocol of its own: lines of JSON, a
// result at the end of what was asked, and message_stop. What their schema and their help are made of is the same as of
// any command.
func TestEveryStream(t *testing.T) {
	talkative := slices.DeleteFunc(of(t, "stream"), (*command).serves)
	everyOne(t, talkative, map[string]func(*testing.T, *command){
		"answers":               streamAnswers,
		"no_server":             streamWithoutServer,
		"help":                  checkHelp,
		"help_names_every_flag": checkOptionsInHelp,
		"schema":                streamSchema,
		"wrong_flag":            streamWrongFlag,
		"missing_argument":      streamMissingArgument,
		"surplus_argument":      streamSurplusArgument,
		"stdin_closed":          streamStdinClosed,
		"stdin_silent":          streamStdinSilent,
		"stdin_frames":          streamFrames,
		"stdout_lost":           streamStdoutLost,
		"stderr_closed":         streamStderrClosed,
		"no_home":               streamNoHome,
		"unwritable_home":       streamUnwritableHome,
		"torn_config":           streamTornConfig,
		"narrow_and_foreign":    streamNarrowAndForeign,
		"line_ends":             streamLineEnds,
	})
}

type message = map[string]any

// judgeStream holds an outcome against all that is promised of the lines, and returns them.
func (c *command) judgeStream(t *testing.T, o outcome) []message {
	t.Helper()
	c.declares(t, o)
	list := []message{}
	for line := range strings.Lines(o.stdout) {
		m := message{}
		if err := json.Unmarshal([]byte(line), &m); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("a line is not a JSON object: %v\n%s", err, o)
		}
		if kind, _ := m["type"].(string); kind == "" || m["ok"] != nil {
			t.Errorf("a line has no type: %s\n%s", line, o)
		}
		list = append(list, m)
	}
	if len(list) < 2 || list[len(list)-1]["type"] != "message_stop" || list[len(list)-2]["type"] != "result" {
		t.Fatalf("the lines do not end with a result and message_stop\n%s", o)
	}
	r := list[len(list)-2]
	bad, told := r["is_error"].(bool)
	if problems, _ := r["errors"].([]any); !told || bad != (o.code != 0) || bad != (r["subtype"] != "success") || bad &&
		len(problems) == 0 {
		t.Errorf("the result does not agree with the exit status\n%s", o)
	}
	if ends := slices.DeleteFunc(slices.Clone(list),
		func(m message) bool { return m["type"] != "result" }); len(ends) != 1 {
		t.Errorf("there are %d results\n%s", len(ends), o)
	}
	return list
}

// result is the text of the result.
func result(list []message) string {
	for _, m := range list {
		if m["type"] == "result" {
			return fmt.Sprint(m["result"])
		}
	}
	return ""
}

// refusedIn holds what is promised of a call that cannot begin, on both streams.
func (c *command) refusedIn(t *testing.T, o outcome, code int, words ...string) {
	t.Helper()
	refused(t, o, code, words...)
	list := c.judgeStream(t, o)
	if kind := list[0]["type"]; kind != "error" && !(kind == "system" && list[0]["subtype"] == "error") ||
		len(list) != 3 {
		t.Errorf("the lines are not an error, its result and the end\n%s", o)
	}
	if words == nil {
		return
	}
	if told := fmt.Sprint(list[0]["message"]); !strings.Contains(told, words[0]) ||
		!strings.Contains(result(list), words[0]) {
		t.Errorf("the lines do not name %q\n%s", words[0], o)
	}
}

func streamAnswers(t *testing.T, c *command) {
	for _, more := range [][]string{nil, {"--cwd", "."}} {
		b := furnished(t, c)
		before := b.tree(t)
		o := b.run(t, c.talk(t, says(t), more...))
		list := c.judgeStream(t, o)
		if o.code != 0 || result(list) != said || unwarned(o) != "" {
			t.Errorf("the first example is not answered\n%s", o)
		}
		init := list[0]
		if init["type"] != "system" || init["subtype"] != "init" || init["cwd"] != b.project {
			t.Errorf("the first line does not say where it works\n%s", o)
		}
		b.leftOnly(t, before, o, b.conversations(), b.snapshots(), b.triedWalls())
		b.alone(t, o)
		shown := b.run(t, call{args: []string{"session", "show", fmt.Sprint(init["session_id"])}})
		if commandNamed(t, "session.show").judge(t, shown); shown.code != 0 || !strings.Contains(shown.stdout, said) {
			t.Errorf("the conversation is not kept\n%s", shown)
		}
		effects := b.run(t, call{args: []string{"status", "--show-side-effects"}})
		if !strings.Contains(effects.stdout, `"path":"`+b.conversations()+`"`) {
			t.Errorf("that conversations are kept is not declared\n%s", effects)
		}
	}
}

func streamWithoutServer(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	base := nobody(t)
	o := b.run(t, c.talk(t, base))
	list := c.judgeStream(t, o)
	address := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/v1")
	if o.code != 1 || !strings.Contains(result(list), address) || !strings.Contains(o.stderr, address) {
		t.Errorf("that nobody is there is not told\n%s", o)
	}
	b.leftOnly(t, before, o, b.conversations(), b.snapshots(), b.triedWalls())
	b.alone(t, o)
}

func streamSchema(t *testing.T, c *command) {
	b := newBox(t)
	before := b.tree(t)
	o := b.run(t, call{args: append(c.words(), "--schema")})
	if list := judgeLines(t, o); o.code != 0 || len(list) != 1 ||
		list[0].Data.(map[string]any)["output_class"] != "stream" {
		t.Errorf("--schema tells nothing\n%s", o)
	}
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("a description wrote %v", changed)
	}
	if got, want := slices.Sorted(maps.Keys(c.Exits)), []string{
		"0", "1", "129", "130", "131", "143", "2",
		"3",
	}; !slices.Equal(got, want) {
		t.Errorf("the exit statuses are %v, those of an agent are %v", got, want)
	}
	if len(c.Output) > 0 && string(c.Output) != "null" {
		t.Errorf("it has a schema of data that it never sends: %s", c.Output)
	}
}

func streamWrongFlag(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	base := nobody(t)
	o := b.run(t, c.talk(t, base, "--cwdd", "x", "--no-such-flag"))
	c.refusedIn(t, o, 2, "--cwdd", "--no-such-flag", "did you mean --cwd?")
	// of envelopes alone
	for _, flag := range []string{"--validate-only", "--dry-run", "--output-schema", "--show-requirements", "--quiet"} {
		c.refusedIn(t, b.run(t, c.talk(t, base, flag)), 2, flag)
	}
	help := b.run(t, call{args: append(c.words(), "--no-such-flag", "--help")})
	c.refusedIn(t, help, 2, "--no-such-flag") // so an example that is tried with --help can fail
	b.leftOnly(t, before, o)
}

func streamMissingArgument(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	for _, name := range c.valued() {
		o := b.run(t, c.talk(t, nobody(t), "--"+name))
		c.refusedIn(t, o, 2, "--"+name)
		b.leftOnly(t, before, o)
	}
	o := b.run(t, call{args: c.words()})
	c.refusedIn(t, o, 2, "--prompt")
	b.leftOnly(t, before, o)
}

func streamSurplusArgument(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	o := b.run(t, c.talk(t, nobody(t), "surplus"))
	c.refusedIn(t, o, 2, "surplus")
	b.leftOnly(t, before, o)
}

// wordless is the call without its message.
func wordless(t *testing.T, typed call) call {
	t.Helper()
	i := slices.Index(typed.args, "-p")
	if i < 0 {
		t.Fatalf("the first example has no -p: %v", typed.args)
	}
	typed.args = slices.Delete(slices.Clone(typed.args), i, i+2)
	return typed
}

func streamStdinClosed(t *testing.T, c *command) {
	b := furnished(t, c)
	base := says(t)
	for _, redir := range []string{"<&-", "</dev/null"} {
		typed := c.talk(t, base)
		typed.redir = redir
		o := b.run(t, typed)
		if list := c.judgeStream(t, o); o.code != 0 || result(list) != said {
			t.Errorf("with %s it fails\n%s", redir, o)
		}
		empty := wordless(t, typed)
		c.refusedIn(t, b.run(t, empty), 2, "--prompt")
		b.alone(t, o)
	}
}

// streamStdinSilent has a message, so whether anything comes on standard input does not matter.
func streamStdinSilent(t *testing.T, c *command) {
	b := furnished(t, c)
	typed := c.talk(t, says(t))
	typed.silent = true
	o := b.run(t, typed)
	if list := c.judgeStream(t, o); o.code != 0 || result(list) != said {
		t.Errorf("it fails\n%s", o)
	}
}

// streamFrames gives the message as a frame, and as a text.
func streamFrames(t *testing.T, c *command) {
	for _, in := range []string{
		`{"type":"user","content":"Where is it?"}` + "\n", "Where is it?\n",
		"{ is not a frame\n",
	} {
		b := furnished(t, c)
		typed := wordless(t, c.talk(t, says(t)))
		typed.stdin = in
		o := b.run(t, typed)
		if list := c.judgeStream(t, o); o.code != 0 || result(list) != said {
			t.Errorf("%q is not answered\n%s", in, o)
		}
		b.alone(t, o)
	}
}

// streamStdoutLost lets the model start something that would stay, while nobody reads.
func streamStdoutLost(t *testing.T, c *command) {
	base := model(t, `[{"say": "I will look."}, {"shell": "sleep 300 & echo started"}, {"say": "`+said+`"}]`)
	b := furnished(t, c)
	read := b.run(t, c.talk(t, base, "--permission-mode", "auto"))
	if list := c.judgeStream(t, read); read.code != 0 || result(list) != said ||
		!strings.Contains(read.stdout, "started") {
		t.Fatalf("nothing is started, so there is nothing to lose\n%s", read)
	}
	b.alone(t, read)
	for how, typed := range lost(t, c.talk(t, base, "--permission-mode", "auto")) {
		b := furnished(t, c)
		before := b.tree(t)
		o := b.run(t, typed)
		c.declares(t, o)
		if how == ">/dev/full" && (o.code != 1 || !strings.Contains(o.stderr, "cannot be written")) {
			t.Errorf("lines that were lost are not told\n%s", o)
		}
		b.leftOnly(t, before, o, b.conversations(), b.snapshots(), b.triedWalls())
		b.alone(t, o)
	}
	for _, typed := range lost(t, c.talk(t, base, "--no-such-flag")) {
		refused(t, b.run(t, typed), 2, "--no-such-flag")
	}
}

func streamStderrClosed(t *testing.T, c *command) {
	b := furnished(t, c)
	base := says(t)
	for _, redir := range []string{"2>&-", "2>/dev/null", "2>" + full(t)} {
		typed := c.talk(t, base)
		typed.redir = redir
		o := b.run(t, typed)
		if list := c.judgeStream(t, o); o.code != 0 || result(list) != said {
			t.Errorf("with %s it fails\n%s", redir, o)
		}
		typed = c.talk(t, base, "--no-such-flag")
		typed.redir = redir
		o = b.run(t, typed)
		if list := c.judgeStream(t, o); o.code != 2 || !strings.Contains(result(list), "--no-such-flag") {
			t.Errorf("with %s a failure is not told on standard output\n%s", redir, o)
		}
	}
}

func streamNoHome(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.talk(t, says(t))
	typed.unset = []string{"HOME"}
	o := b.run(t, typed)
	c.refusedIn(t, o, 1, "home")
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("without a home it wrote %v", changed)
	}
}

func streamUnwritableHome(t *testing.T, c *command) {
	b := furnished(t, c)
	file := b.write(t, "file", "a file cannot hold anything, for the superuser neither\n")
	typed := c.talk(t, says(t))
	typed.unset, typed.set = []string{"HOME"}, []string{"HOME=" + filepath.Join(file, "home")}
	o := b.run(t, typed)
	c.judgeStream(t, o)
	if o.code != 0 || !strings.Contains(o.stderr, file) {
		t.Errorf("it does not say that nothing is kept\n%s", o)
	}
}

// streamTornConfig cuts the user's configuration in the middle of a line. It may do without, or refuse, but not in
// silence.
func streamTornConfig(t *testing.T, c *command) {
	b := furnished(t, c)
	file := b.write(t, "home/.config/omniagent/config.toml", "# mine\ngrace = \"3s\"\noutput = \"js")
	o := b.run(t, c.talk(t, says(t)))
	c.judgeStream(t, o)
	if !strings.Contains(o.stderr, file+":3:") {
		t.Errorf("the torn line is not named\n%s", o)
	}
	if help := b.run(t, call{args: append(c.words(), "--help")}); help.code != 0 {
		t.Errorf("there is no help with a torn configuration\n%s", help)
	}
}

func streamNarrowAndForeign(t *testing.T, c *command) {
	b := furnished(t, c)
	base := says(t)
	for _, set := range [][]string{
		{"COLUMNS=40", "LINES=10"},
		{"LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8", "LC_NUMERIC=de_DE.UTF-8", "TZ=Europe/Berlin"},
	} {
		typed := c.talk(t, base)
		typed.set = set
		o := b.run(t, typed)
		if list := c.judgeStream(t, o); o.code != 0 || result(list) != said {
			t.Errorf("%v changes the answer\n%s", set, o)
		}
		typed.args = append(typed.args, "--no-such-flag")
		c.refusedIn(t, b.run(t, typed), 2, "start has no flag --no-such-flag")
	}
}

func streamLineEnds(t *testing.T, c *command) {
	base := says(t)
	for form, check := range map[string]func(o outcome) bool{
		"stream-json": func(o outcome) bool { return strings.Count(o.stdout, "\n") > 3 },
		"json": func(o outcome) bool {
			return strings.Count(o.stdout, "\n") == 1 &&
				strings.Contains(o.stdout, said)
		},
		"text": func(o outcome) bool { return o.stdout == said+"\n" },
	} {
		b := furnished(t, c)
		o := b.run(t, c.talk(t, base, "--output-format", form))
		if clean(t, o); o.code != 0 || !check(o) || !strings.HasSuffix(o.stdout, "\n") {
			t.Errorf("--output-format %s is not what it says\n%s", form, o)
		}
		for line := range strings.Lines(o.stdout) {
			if form != "text" && !json.Valid([]byte(line)) {
				t.Errorf("--output-format %s has a line that is not JSON: %s", form, line)
			}
		}
	}
}
