//go:build unix

package evaluation

import (
	"debug/elf"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// What goes in, and how much comes out: §37 to §56.

func inputModes() []mode {
	return []mode{
		{37, "Critical", "REPL", "", repl},
		{38, "High", "Runtime mismatch", "", runtimeMismatch},
		{40, "High", "Work that is not awaited", "", awaited},
		{41, "High", "Update notifier", "", updateNotifier},
		{42, "Critical", "Debug leakage", "", debugLeakage},
		{43, "Critical", "Output size", "", outputSize},
		{44, "Medium", "Knowledge packaging", "", knowledge},
		{45, "Critical", "Headless authentication", "", headlessAuthentication},
		{46, "High", "API translation", "no command stands for a call of somebody's API", nil},
		{47, "High", "MCP staleness", "the MCP server is the program itself: no wrapper can be out of date", nil},
		{49, "High", "Asynchronous jobs", "", jobs},
		{50, "Critical", "Stdin deadlock", "", stdinDeadlock},
		{51, "High", "Globs and split words", "", splitWords},
		{52, "Medium", "Discovery of the tree", "", tree},
		{53, "Critical", "Expiry of credentials", "", expiry},
		{54, "High", "Conditional arguments", "", conditional},
		{55, "High", "Silent truncation", "", truncation},
		{56, "High", "Pipeline masking", "", masking},
	}
}

func jobs(p *probe) {
	async := map[string]value{}
	for name, x := range p.extensions() {
		if x.yes("async") {
			async[name] = x
		}
	}
	has := func(members ...string) bool {
		return every(async, func(_ string, x value) bool {
			return !slices.ContainsFunc(members, func(m string) bool {
				return !x.has("job_descriptor_schema/properties/" + m)
			})
		})
	}
	p.need(1, has("job_id", "status"), "a command that returns before its work is done declares a job, with its status")
	p.need(2, has("status_command", "cancel_command", "poll_interval_ms", "timeout_ms", "terminal"),
		"with the commands that ask for it and cancel it, whether it is over, and how often to ask")
	p.need(3, p.commands()["runs.status"].has("exit_codes/3"),
		"the exit status of the status command tells a job that runs from one that is done")
}

func repl(p *probe) {
	quick := true
	for _, c := range append(p.safeCalls(), nil) {
		_, ok := p.quick(c...)
		quick = quick && ok
	}
	p.need(1, quick && len(p.commands()) > 0, "no reading command waits for a conversation")
	p.need(2, p.run().exit == 0 && p.run().envelope(), "a bare call is not a prompt loop")
	p.need(3, every(p.extensions(), func(name string, x value) bool {
		if x.no("interactive") {
			return x.no("requires_interactive")
		}
		asked, quick := p.quick(name, "openai") // login
		return x.no("requires_interactive") && quick && asked.exit == 4
	}), "every command declares requires_interactive:false, and keeps to it within 1 s")
	p.note("a command that may ask, login, ends with 4 off a terminal")
}

func runtimeMismatch(p *probe) {
	empty := p.do(call{args: []string{"version"}, env: []string{"PATH=", "HOME=", "TMPDIR="}})
	p.need(1, empty.succeeded(), "it runs with an empty PATH and without HOME")
	requirements := p.run("config", "set", "--show-requirements")
	p.need(2, requirements.str("data/runtime") != "" &&
		every(p.extensions(), func(_ string, x value) bool { return x.str("runtime") != "" && x.has("platform") }),
		"the schema says what each command needs of the machine")
	p.need(3, selfContained(p.s.argv[0]), "one file without an interpreter or shared libraries")
	p.note("so no RUNTIME_VERSION can occur")
}

// selfContained reports whether the program names no interpreter. Where programs are no ELF files that cannot be told,
// and go by the build.
func selfContained(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return runtime.GOOS == "darwin"
	}
	defer func() { _ = f.Close() }()
	libraries, _ := f.ImportedLibraries()
	return len(libraries) == 0 &&
		!slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

func awaited(p *probe) {
	whole := true
	for _, c := range p.safeCalls() {
		r := p.run(c...)
		whole = whole && r.exit >= 0 && (r.exit != 0 || r.out != "" || slices.Contains(c, "id") ||
			slices.Contains(c, "jsonl")) && (r.there || plainByDesign(c, r))
	}
	p.need(1, whole, "never an empty standard output with status 0, never half a JSON")
	slow := p.slowly("--schema", "--output", "json")
	p.need(2, slow == p.s.schema().at("data").text() && slow != "null",
		"a large answer arrives whole at a reader that takes it 512 bytes at a time")
	answers := make([]*result, 20)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i] = p.do(call{args: []string{"errors", "list", "--limit", "0"}, secret: true}) })
	}
	wait.Wait()
	p.need(3,
		!slices.ContainsFunc(answers, func(r *result) bool {
			return !r.succeeded() ||
				len(r.list("data/errors")) < 10
		}), "20 calls at once all end with their whole answer")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err == nil {
		defer func() { _ = full.Close() }()
		r := p.do(call{args: []string{"errors", "list"}, stdout: full})
		p.need(3, r.exit > 0, "an answer that could not be written is not a success")
	}
	p.note("except for run --detach, the supervisor waits for the command and its children before it answers")
}

// slowly reads the data of an answer piece by piece.
func (p *probe) slowly(args ...string) string {
	reader, writer, err := os.Pipe()
	if err != nil {
		return ""
	}
	text := make(chan string, 1)
	p.do(call{args: args, stdout: writer, during: func(*exec.Cmd) {
		_ = writer.Close()
		var all strings.Builder
		b := make([]byte, 512)
		for {
			n, err := reader.Read(b)
			all.Write(b[:n])
			if err != nil {
				break
			}
			runtime.Gosched()
		}
		_ = reader.Close()
		text <- all.String()
	}})
	return parse(<-text).at("data").text()
}

func updateNotifier(p *probe) {
	env, stop := listen()
	env = append(env, "CI=true", "NO_UPDATE_NOTIFIER=1")
	said, ran := false, len(p.commands()) > 0
	for _, c := range p.safeCalls() {
		r := p.do(call{args: c, env: env})
		ran = ran && r.exit >= 0
		if c[0] != "changelog" && c[0] != "agents" && c[0] != "doctor" && c[0] != "manifest" {
			said = said || strings.Contains(strings.ToLower(r.err), "update") || r.has("meta/update_available")
		}
	}
	p.need(1, ran && !said, "in CI no word of an update on either stream")
	p.need(2, stop() == 0 && ran, "no connection is opened, seen from a proxy that all are told to use")
	p.need(3, every(p.enveloped(), func(_ string, e value) bool { return e.has("flags/no-update-check") }),
		"every command with an envelope takes --no-update-check")
	p.need(3,
		p.do(call{args: []string{"status", "--no-update-check"}, env: []string{"TOOL_NO_UPDATE=1"}}).succeeded() &&
			!p.run("status").has("meta/update_available"), "meta.update_available is absent while nothing is known")
}

func debugLeakage(p *probe) {
	secret := madeUpSecret()
	wrong := p.do(call{args: []string{"status", "--token", secret, "--debug"}, secret: true})
	p.need(1, wrong.exit > 0 && !strings.Contains(wrong.out+wrong.err, secret), "--token X --debug does not show X")
	p.need(2, wrong.envelope() && strings.Contains(p.run("audit-log").out, "[REDACTED]"),
		"the record of the call has [REDACTED] in its place")
	p.script("git", `echo "git version 2.45.0"; echo "Authorization: Bearer `+secret+`" >&2`)
	p.write("work/.omniagent/config.toml", "current_context = \""+secret+"\"\n")
	env := []string{"OPENAI_API_KEY=" + secret, "AUTH_HEADER=" + secret, "HTTPS_PROXY=http://user:" + secret +
		"@proxy.example:1"}
	leaked, ran := false, true
	for _, c := range [][]string{
		{"doctor", "--debug"},
		{"status", "--debug", "--unmask"},
		{"config", "list", "--debug"},
		{"trust", "--debug", "--dry-run"},
	} {
		r := p.do(call{args: c, env: env})
		leaked = leaked || strings.Contains(r.err, secret) || !slices.Contains(c, "--unmask") &&
			strings.Contains(r.out, secret)
		ran = ran && r.envelope()
	}
	p.need(3, ran && !leaked,
		"nor what stands in variables, a proxy address, a file or a child's output, --unmask or not")
	p.need(3,
		every(p.envelopedExtensions(), func(_ string, x value) bool {
			return x.yes("parameters/unmask/sensitive") &&
				x.has("parameters/debug")
		}), "sensitive:true in the schema on what shows secrets")
	stream := p.do(call{args: []string{"start", "-v", "-p", "hi", "--api-key", secret}, env: env, secret: true})
	p.need(3, stream.refusedInStream(2, "--api-key") && !strings.Contains(stream.out+stream.err, secret),
		"nor does one that speaks to a model show its key")
	p.note("--trace-safe is read as the only kind of trace that there is: no flag turns the removal off")
}

func outputSize(p *probe) {
	line := `{"_cmd":"config.get","key":"` + strings.Repeat("long-", 600) + `"}` + "\n"
	p.write("work/calls.jsonl", strings.Repeat(line, 500))
	p.do(call{args: []string{"exec", "--input-file", "calls.jsonl", "--ignore-errors"}, limit: 6 * time.Second})
	large := p.run("audit-log", "--limit", "0")
	p.need(1, large.succeeded() && len(large.out) > 50_000 && len(large.out) <= 1<<20,
		"an answer of more than 1 MiB is cut and still JSON")
	p.need(2, large.yes("meta/truncated") && large.num("meta/total_bytes") > 1<<20,
		"meta.truncated and meta.total_bytes")
	p.need(2, strings.HasPrefix(large.str("meta/truncation_hint"), "omniagent audit-log"),
		"with the command that brings the rest")
	page := p.run("audit-log")
	p.need(3, len(page.list("data/entries")) == 20, "a list has 20 rows unless told otherwise")
	p.need(3, every(p.extensions(), func(_ string, x value) bool { return x.num("max_output_bytes") > 0 }),
		"max_output_bytes in the schema of every command")
	small := p.do(call{
		args: []string{"completion", "bash", "--output", "json"},
		env:  []string{"OMNIAGENT_MAX_OUTPUT_BYTES=4096"},
	})
	p.need(3, small.succeeded() && len(small.out) <= 4096 && small.yes("meta/truncated") &&
		small.warned("FIELD_TRUNCATED"), "a long string is cut under a smaller limit, and the field is named")
	p.need(3, small.yes("data/_truncated"), "with _truncated:true")
}

func knowledge(p *probe) {
	p.need(1,
		every(p.commands(), func(_ string, e value) bool {
			return e.str("danger_level") != "" &&
				len(e.list("examples")) > 0
		}), "--schema has danger_level and examples with every command")
	p.need(2, every(p.extensions(), func(_ string, x value) bool {
		return x.has("requires") && x.has("read_only") && x.str("docs_url") != ""
	}), "and requires, read_only and docs_url")
	page := documentation("docs/commands.md")
	p.need(2, every(p.extensions(), func(_ string, x value) bool {
		file, anchor, _ := strings.Cut(x.str("docs_url"), "#")
		return file == "docs/commands.md" && strings.Contains(strings.ReplaceAll(page, " ", "-")+"\n", "-"+anchor+"\n")
	}), "docs_url leads to the section of the command")
	r := p.run("generate-skills", "cards")
	p.need(3, r.succeeded() && r.str("data/version") == strings.TrimSpace(p.run("--version").out) &&
		r.str("data/version") != "", "cards for agents are written from the same declaration, with its version")
	covered := r.succeeded()
	for _, name := range slices.Sorted(maps.Keys(p.commands())) {
		covered = covered &&
			slices.ContainsFunc(r.list("data/skills"),
				func(v value) bool { return strings.ReplaceAll(v.str("command"), " ", ".") == name })
	}
	p.need(3, covered, "one for every command")
	p.note("--skill is read as generate-skills")
}

func stdinDeadlock(p *probe) {
	r, quick := p.quick("exec")
	p.need(1, quick && r.exit > 0, "a command that reads standard input ends within 1 s when there is none")
	p.need(2, r.failed(4, "STDIN_REQUIRED") && r.str("error/suggestion") != "", "STDIN_REQUIRED, status 4, with a hint")
	dash, soon := p.quick("config", "get", "-")
	p.need(2, soon && dash.failed(2, "EMPTY_STDIN"), "- with nothing to read is an error of its own")
	p.need(3, strings.Contains(r.str("error/suggestion"), "--input-file"), "the hint names the flag that does without")
	reading := 0
	p.need(3, every(p.extensions(), func(_ string, x value) bool {
		if x.has("stdin_input") {
			reading++
			return x.str("stdin_input/non_tty_behavior") != "" && x.has("stdin_input/required")
		}
		return true
	}) && reading > 0 && p.extensions()["config.get"].yes("parameters/key/stdin_fallback"),
		"stdin_fallback and non_tty_behavior in the schema")
	silent, writer, _ := os.Pipe()
	defer func() { _, _ = silent.Close(), writer.Close() }()
	open := p.do(call{args: []string{"exec", "--timeout", "300ms"}, input: silent})
	p.need(3, open.failed(10, "TIMEOUT"), "a pipe that nobody writes to ends with the time limit")
}

func splitWords(p *probe) {
	for _, dir := range []string{"my project/.git", "my project/.omniagent"} {
		_ = os.MkdirAll(filepath.Join(p.work, dir), 0o755)
	}
	p.write("work/my project/.omniagent/config.toml", "grace = \"3s\"\n")
	p.write("work/a*b/.omniagent/config.toml", "grace = \"3s\"\n")
	whole := p.run("trust", "my project")
	p.need(1, whole.succeeded() && len(whole.list("data/results")) == 1, "a name with a space is one argument")
	star := p.run("trust", "a*b", "--dry-run")
	p.need(1, star.succeeded() && len(star.list("data/results")) == 1, "* is a character like any other")
	split := p.run("trust", "my", "project")
	p.need(2, split.exit == 5 && split.envelope() && split.str("error/code") == "FILE_NOT_FOUND",
		"a name split in two: FILE_NOT_FOUND, status 5")
	p.need(3, strings.Contains(split.out, `my project`) && strings.Contains(split.str("error/suggestion"),
		"my project"), "with the name that was probably meant")
	files := 0
	p.need(3, every(p.extensions(), func(_ string, x value) bool {
		return every(members(x.at("parameters")), func(_ string, param value) bool {
			if param.str("pattern_type") == "filepath" {
				files++
				return param.no("glob_pattern")
			}
			return true
		})
	}) && files > 0, "the schema tells file paths from patterns")
}

func tree(p *probe) {
	r := p.fastest(500*time.Millisecond, call{args: []string{"--schema", "--output", "json"}})
	p.need(1, r.succeeded() && len(r.at("data/commands").keys()) > 5, "one call gives the whole tree")
	p.need(2, every(p.commands(), func(_ string, e value) bool {
		return every(members(e.at("flags")), func(_ string, f value) bool {
			return f.str("type") != "" && f.has("required") && f.str("description") != ""
		})
	}), "with every argument and its type")
	p.need(3, r.there && r.took < 500*time.Millisecond, "within 500 ms")
	p.need(3, every(p.extensions(), func(_ string, x value) bool { return len(x.at("parameters").keys()) > 0 }),
		"with patterns, lengths and places of arguments")
	manifest := p.run("manifest")
	p.need(3, manifest.succeeded() && len(manifest.out) <= 24<<10, "the manifest has at most 24 KB")
}

func conditional(p *probe) {
	r := p.run("config", "set")
	p.need(1, r.failed(2, ""), "missing arguments are an argument error")
	p.need(2, slices.Equal(r.strings("error/missing_args"), []string{"key", "value"}),
		"missing_args has all of them at once")
	both := p.run("status", "--quiet", "--debug")
	p.need(2, both.exit == 2, "flags that exclude each other are refused")
	only := p.run("config", "set", "--validate-only")
	p.need(3, only.exit == 2 && slices.Equal(only.strings("error/missing_args"), r.strings("error/missing_args")),
		"--validate-only finds them too")
	groups := p.extensions()["status"].list("arg_groups")
	p.need(3, slices.ContainsFunc(groups, func(g value) bool {
		return slices.Contains(g.strings("args"), "quiet") && slices.Contains(g.strings("args"), "debug") &&
			g.str("condition") != ""
	}), "arg_groups in the schema, each with its condition")
}

func truncation(p *probe) {
	long := strings.Repeat("x", 5000)
	r := p.run("config", "set", "current_context", long)
	p.need(1, r.exit == 2 && r.envelope(), "a value that is too long is refused")
	p.need(2, (r.str("error/code") == "FIELD_TOO_LARGE" || r.str("error/code") == "VALIDATION_ERROR") &&
		r.str("error/phase") == "validation" && !p.exists("work/.omniagent"), "before anything is written")
	lengths := 0
	p.need(3, every(p.extensions(), func(_ string, x value) bool {
		return every(members(x.at("parameters")), func(_ string, param value) bool {
			if kind := param.str("type"); kind != "string" && kind != "array" || param.has("enum_values") {
				return true
			}
			lengths++
			return param.num("max_length") > 0
		})
	}) && lengths > 0, "max_length in the schema of every text")
	p.need(3, r.exit == 2 && r.num("error/errors") == -1 && strings.Contains(r.out, "4096"), "the error says the limit")
	exact := strings.Repeat("y", 3000)
	set := p.run("config", "set", "current_context", exact)
	p.need(3, set.succeeded() && set.str("data/value") == exact || set.exit == 2, "what is accepted is kept whole")
}

func masking(p *probe) {
	failed, fine := p.run("config", "get", "nothing"), p.run("config", "get", "output")
	p.need(1, failed.exit == 2 && failed.there, "a failure shows in the JSON, whatever a pipe does to the status")
	p.need(2, failed.no("meta/ok") && failed.num("meta/exit_code") == 2 && fine.yes("meta/ok") &&
		fine.num("meta/exit_code") == 0, "meta.ok and meta.exit_code in both")
	p.need(3, strings.Contains(failed.err, "TOOL_FAILED=1\n") && !strings.Contains(fine.err, "TOOL_FAILED"),
		"TOOL_FAILED=1 on standard error after a failure only")
	p.need(3, p.run("trust", "missing").num("meta/exit_code") == 5 &&
		strings.Contains(p.run("exec").err, "TOOL_FAILED=1"), "for every kind of failure")
}
