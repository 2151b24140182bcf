//go:build unix

package evaluation

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// The machine around it, and what is shipped with it: §57 to §77.

func machineModes() []mode {
	return []mode{
		{57, "Medium", "Locale", "", locale},
		{58, "High", "Several agents at once", "", multiAgent},
		{59, "High", "High-entropy values", "", entropy},
		{60, "Critical", "Output buffering", "", buffering},
		{61, "Critical", "Pipe deadlock", "", pipeDeadlock},
		{62, "Critical", "Editor trap", "", editor},
		{63, "Medium", "Width", "", width},
		{
			64, "Critical", "Headless GUI",
			"no command opens a window or a browser (gui_operations is empty everywhere)",
			nil,
		},
		{65, "High", "Global configuration", "", globalConfig},
		{66, "High", "Symlink loops", "", symlinks},
		{67, "High", "JSON5 input", "", json5},
		{68, "High", "Pollution of stdout", "", pollution},
		{69, "High", "Order of arguments", "", argumentOrder},
		{70, "High", "Arity", "", arity},
		{71, "Critical", "Installation", "", installation},
		{72, "High", "Drift of artifacts", "", artifactDrift},
		{73, "High", "Drift of documentation", "", docDrift},
		{74, "Critical", "Scopes", "", scopes},
		{75, "Critical", "Safe default", "", safeDefault},
		{76, "High", "Streaming by default", "", streaming},
		{77, "High", "Batch dispatch", "", batch},
	}
}

func locale(p *probe) {
	args := []string{"trust", "missing"}
	plain := p.run(args...)
	same := plain.exit == 5
	for _, l := range []string{"fr_FR.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"} {
		r := p.do(call{args: args, env: []string{"LANG=" + l, "LC_ALL=" + l}})
		same = same && r.exit == plain.exit && r.at("error").text() == plain.at("error").text()
	}
	p.need(1, same, "the same status under every locale")
	p.need(2, same && plain.str("error/code") == "FILE_NOT_FOUND", "the same error.code, message and cause, in English")
	child := p.childEnvironment([]string{"LC_ALL=fr_FR.UTF-8", "LANG=fr_FR.UTF-8"})
	p.need(3, child["LC_ALL"] == "C" || child["LC_MESSAGES"] == "C", "children speak it too: their locale is C")
	p.need(3, plain.has("error/locale_message"),
		"error.locale_message: no text in another language ever comes up that it could hold")
}

func multiAgent(p *probe) {
	answers := make([]*result, 10)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() {
			answers[i] = p.do(call{
				args: []string{"config", "set", "grace", fmt.Sprintf("%ds", 10+i)}, secret: true,
				limit: 8 * time.Second, env: []string{"OMNIAGENT_LOCK_TIMEOUT=3s"},
			})
		})
	}
	wait.Wait()
	after := p.run("config", "get", "grace").str("data/value")
	p.need(1, after != "" &&
		slices.ContainsFunc(answers, func(r *result) bool { return r.succeeded() && r.str("data/value") == after }),
		"10 changes at once: the file holds the value of one that succeeded")
	lost := slices.ContainsFunc(answers, func(r *result) bool {
		return !r.succeeded() &&
			!r.failed(6, "CONCURRENT_MODIFICATION")
	})
	p.need(2, !lost, "the others succeeded before it or were told CONCURRENT_MODIFICATION")
	release := p.holdLocks()
	held := p.do(call{args: []string{"config", "set", "grace", "99s"}, env: []string{"OMNIAGENT_LOCK_TIMEOUT=20ms"}})
	release()
	p.need(2, held.failed(6, "CONCURRENT_MODIFICATION") && held.num("error/retry_after_ms") > 0,
		"status 6 with retry_after_ms")
	one := p.run("config", "get", "grace", "--instance-id", "one")
	two := p.do(call{args: []string{"config", "get", "grace"}, env: []string{"OMNIAGENT_INSTANCE_ID=two"}})
	a, b := one.str("meta/audit_log_path"), two.str("meta/audit_log_path")
	p.need(3, one.str("meta/instance_id") == "one" && two.str("meta/instance_id") == "two" && a != b &&
		strings.Contains(a, "/instances/one/"), "--instance-id and its variable keep state apart")
	p.need(3, !slices.ContainsFunc(p.files(), func(f string) bool { return strings.Contains(f, ".tmp") }) &&
		after != "", "changes are made by renaming, and leave no temporary file")
}

func entropy(p *probe) {
	token := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiJhbm4iLCJleHAiOjE3MDAwMDAwMDB9." +
		strings.Repeat("aB3dE6gH", 5)
	p.write("work/token.toml", "scopes = [\""+token+"\"]\n")
	args := []string{"config", "get", "scopes", "--config", "token.toml"}
	masked := p.run(args...)
	p.need(1, masked.succeeded() && !strings.Contains(masked.out, token), "a token in a result is masked")
	p.need(2, len(masked.strings("data/value")) == 1 && strings.HasPrefix(masked.strings("data/value")[0], "[JWT") &&
		masked.yes("meta/masked"), "by a summary that says what it was")
	open := p.run(append(args, "--unmask")...)
	p.need(3, slices.Equal(open.strings("data/value"), []string{token}), "--unmask shows it")
	p.need(3, masked.exit == 0 && p.run("config", "get", "grace").str("data/value") == "2s" &&
		p.run("manifest").str("data/etag") != "" &&
		!p.run("manifest").yes("meta/masked"), "it is found by its form: other values stay")
	p.need(3, strings.Contains(p.s.schema().out, `"high_entropy":true`),
		"high_entropy:true in the schema: no field is declared to hold one, any may")
}

func buffering(p *probe) {
	path, input := p.fifo("calls")
	reader, writer, _ := os.Pipe()
	first, second := "", ""
	p.do(call{args: []string{"exec", "--input-file", path}, stdout: writer, during: func(*exec.Cmd) {
		_ = writer.Close()
		defer func() { _ = reader.Close() }()
		_, _ = io.WriteString(input, `{"_cmd":"version"}`+"\n")
		first = waitFor(reader)
		_, _ = io.WriteString(input, `{"_cmd":"config.get","key":"output"}`+"\n")
		second = waitFor(reader)
		_ = input.Close() // the last writer: the subject reads the end
	}})
	p.need(1, parse(first).num("meta/_line") == 1, "an answer is there before the next line of input is written")
	p.need(2, parse(second).num("meta/_line") == 2 && strings.HasSuffix(second, "\n"), "line by line")
	_, done := p.hang()
	defer done()
	beats := p.do(call{
		args: []string{"doctor", "--heartbeat-ms", "100", "--timeout", "550ms"},
		env:  []string{"OMNIAGENT_GRACE=100ms"},
	})
	all := lines(beats.out)
	live := []value{}
	for _, v := range all {
		if v.yes("heartbeat") {
			live = append(live, v)
		}
	}
	p.need(3, len(live) >= 2 && live[0].num("elapsed_ms") >= 100 &&
		live[1].num("elapsed_ms") > live[0].num("elapsed_ms"),
		"--heartbeat-ms shows life on standard output, with elapsed_ms")
	p.need(3, len(all) > 0 && all[len(all)-1].has("ok") && !all[len(all)-1].has("heartbeat"), "the answer comes last")
	p.litter(1000)
	step := false
	for _, v := range lines(p.run("cleanup", "--min-age", "0", "--heartbeat-ms", "1", "--live").out) {
		step = step || v.yes("heartbeat") && v.str("step") == "cache"
	}
	p.need(3, step, "with the step that it is at, where there are steps")
}

func pipeDeadlock(p *probe) {
	const line = `{"_cmd":"version"}`
	pad := func(n int) string { return line[:len(line)-1] + strings.Repeat(" ", n-len(line)-1) + "}\n" }
	over := p.fastest(p.s.second(), call{args: []string{"exec"}, stdin: pad(65537)})
	p.need(1, over.exit > 0 && over.took <= p.s.second(), "more than 64 KiB on standard input does not hang")
	p.need(2, over.failed(2, "STDIN_TOO_LARGE") && over.num("error/context/limit_bytes") == 65536 &&
		over.num("error/context/received_bytes") == 65537, "STDIN_TOO_LARGE with both sizes")
	p.need(2, p.do(call{args: []string{"exec"}, stdin: pad(65535)}).exit == 0, "65535 bytes are fine")
	p.write("work/large.jsonl", pad(10<<20))
	p.need(3, p.run("exec", "--input-file", "large.jsonl").exit == 0, "--input-file takes 10 MB")
	reading := 0
	p.need(3, every(p.extensions(), func(name string, x value) bool {
		if !x.has("stdin_input") {
			return true
		}
		reading++
		return x.num("stdin_input/max_bytes") == 65536 && p.commands()[name].has("flags/input-file")
	}) && reading > 0, "every command that reads standard input has it, and stdin_input.max_bytes in the schema")
	p.need(3, strings.Contains(over.str("error/suggestion"), "--input-file") &&
		strings.Contains(p.run("exec", "--help").err, "--input-file"), "the error and the help say so")
}

func editor(p *probe) {
	env, marked := p.spies()
	quick := len(p.commands()) > 0
	for _, c := range append(p.safeCalls(), []string{"config", "set"}, []string{"config", "set", "grace"},
		[]string{"trust"}) {
		r := p.fastest(p.s.second(), call{args: c, env: env})
		quick = quick && r.exit >= 0 && r.took <= p.s.second()
	}
	p.need(1, quick && !marked(), "no command starts the editor of the environment; what lacks a value ends within 1 s")
	p.need(2, p.do(call{args: []string{"config", "set", "grace"}, env: env}).failed(2, ""), "with a structured error")
	p.need(3, every(p.extensions(), func(_ string, x value) bool { return x.no("requires_editor") }),
		"every command declares requires_editor:false")
	child := p.childEnvironment(env)
	p.need(3, child["EDITOR"] == "true" && child["VISUAL"] == "true" && child["GIT_EDITOR"] == "true",
		"children get EDITOR=true, VISUAL=true, GIT_EDITOR=true")
	payload := p.do(call{args: []string{"config", "set", "--raw-payload", `{"key":"grace","value":"3s"}`}, env: env})
	p.need(3, payload.succeeded() && !marked(), "texts are given as arguments, --raw-payload or --input-file")
}

func width(p *probe) {
	address := "https://example.com/" + strings.Repeat("path/", 40)
	p.write("work/long.toml", "scopes = [\""+address+"\"]\n")
	args := []string{"config", "get", "scopes", "--config", "long.toml", "--stable-output"}
	wide, narrow := p.run(args...), p.do(call{args: args, env: []string{"COLUMNS=40", "LINES=10"}})
	p.need(1, slices.Equal(wide.strings("data/value"), []string{address}), "a long address arrives whole")
	p.need(2, narrow.out == wide.out && wide.there, "COLUMNS=40 changes nothing in the JSON")
	plain := p.do(call{args: append(args, "--output", "plain"), env: []string{"COLUMNS=40"}})
	p.need(3, strings.Contains(plain.out, address), "nor in plain text")
	wrong, wrapped := p.run("config", "get", "nothing", "--stable-output"), p.run("config", "get", "nothing",
		"--stable-output", "--width", "20")
	p.need(3, wrong.there && wrapped.out == wrong.out && strings.Count(wrapped.err, "\n") > strings.Count(wrong.err,
		"\n"), "--width wraps text on standard error alone")
}

func globalConfig(p *probe) {
	_ = os.MkdirAll(p.work+"/.git", 0o755)
	r := p.run("config", "set", "grace", "3s")
	p.need(1, r.succeeded() && p.exists("work/.omniagent/config.toml") && !p.exists("home/.config/omniagent"),
		"config set writes in the project")
	p.need(2, r.str("meta/write_scope") == "local" && r.str("data/file") == p.work+"/.omniagent/config.toml",
		"meta.write_scope is local, data.file the path")
	global := p.run("config", "set", "grace", "4s", "--global")
	p.need(3, global.str("meta/write_scope") == "global" && global.warned("GLOBAL_CONFIG_MODIFIED") &&
		p.exists("home/.config/omniagent/config.toml"), "only --global writes for all projects, with a warning")
	p.need(3, p.extensions()["config.set"].str("config_write_scope") == "local" &&
		p.extensions()["config.unset"].str("config_write_scope") == "local", "config_write_scope in the schema")
	p.note("no version has changed the form of the file, so there is no migration to confirm")
}

func symlinks(p *probe) {
	deep := "home/.cache/omniagent/deep/" + strings.Repeat("d/", 60)
	p.write(deep+"file", "x")
	outside := p.write("work/keep", "x")
	loop := filepath.Join(p.home, ".cache/omniagent/loop")
	_ = os.MkdirAll(loop, 0o755)
	_ = os.Symlink("..", filepath.Join(loop, "up"))
	_ = os.Symlink(p.work, filepath.Join(loop, "out"))
	state := filepath.Join(p.home, ".local/state/omniagent/loop")
	_ = os.MkdirAll(state, 0o755)
	_ = os.Symlink("..", filepath.Join(state, "up"))
	sized := p.fastest(p.s.second(), call{args: []string{"status"}})
	p.need(1, sized.succeeded() && sized.took <= p.s.second(), "a walk over a loop ends within 1 s")
	args := []string{"cleanup", "--scope", "cache", "--min-age", "0", "--live"}
	far := p.run(args...)
	p.need(2, far.exit > 0 && far.str("error/cause_code") == "DEPTH_EXCEEDED",
		"directories deeper than 50 stop it: DEPTH_EXCEEDED")
	all := p.run(append(args, "--max-depth", "100")...)
	left := p.exists("work/keep") && outside != ""
	p.need(2, left, "what links lead to is never deleted")
	flags := 0
	p.need(3, every(p.commands(), func(_ string, e value) bool {
		if e.has("flags/max-depth") != e.has("flags/no-follow-symlinks") {
			return false
		}
		if e.has("flags/max-depth") {
			flags++
		}
		return true
	}) && flags > 0, "--max-depth and --no-follow-symlinks on the command that walks")
	p.need(3, all.succeeded() && left && !p.exists("home/.cache/omniagent/loop") ||
		all.str("error/cause_code") == "SYMLINK_LOOP" &&
			all.has("data/cleaned"),
		"a loop is removed without following it, or told as SYMLINK_LOOP with what was done")
}

func json5(p *probe) {
	forgiving := []string{
		`{"key":"grace","value":"3s",}`, `{key:"grace",value:"4s"}`,
		"{\"key\":\"grace\", // which\n\"value\":\"5s\"}", `{/* all */"key":'grace',"value":"6s"}`,
	}
	accepted := []bool{}
	for _, text := range forgiving {
		accepted = append(accepted, p.run("config", "set", "--raw-payload", text).succeeded())
	}
	p.need(1, accepted[0], "a trailing comma is accepted")
	p.need(2, !slices.Contains(accepted, false), "so are unquoted keys, single quotes and comments")
	p.need(3, p.run("config", "get", "grace").str("data/value") == "6s", "and mean what they say")
	p.need(3, p.do(call{args: []string{"exec"}, stdin: `{_cmd:"config.get",key:"grace",}` + "\n"}).exit == 0,
		"in lines of a batch too")
	broken := p.run("config", "set", "--raw-payload", `{"key":"grace","value":"7s"`)
	p.need(3, broken.failed(2, "INVALID_JSON") && parse(broken.str("error/corrected_input")).str("value") == "7s",
		"what cannot be read: INVALID_JSON with corrected_input")
}

func pollution(p *probe) {
	p.script("git", `echo "noise of a child"; echo '{"ok":true}'; echo "git version 2.45.0"`)
	noisy := p.run("doctor")
	p.need(1, noisy.envelope() && !strings.Contains(noisy.out, "noise of a child"),
		"what a child prints does not reach standard output")
	p.script("git", `echo "noise in the descriptor" >/proc/$PPID/fd/1; echo "git version 2.45.0"`)
	stray := p.run("doctor")
	if runtime.GOOS != "linux" {
		p.note("writing to another process's descriptor can only be done on Linux")
	}
	p.need(2, stray.envelope() && strings.Count(stray.out, "\n") == 1,
		"what others write to the very descriptor does not break the JSON")
	p.need(3, stray.warned("THIRD_PARTY_STDOUT") || runtime.GOOS != "linux" && stray.envelope(),
		"it becomes a warning, THIRD_PARTY_STDOUT")
	p.script("git", `echo '{"ok":false}' >/proc/$PPID/fd/1; echo "git version 2.45.0"`)
	fake := p.run("doctor", "--debug")
	p.need(3, fake.envelope() && !strings.Contains(fake.out, `{\"ok\":false}`),
		"what could pass for an answer is dropped")
}

func argumentOrder(p *probe) {
	orders := [][]string{
		{"config", "get", "grace", "--fields", "value", "--stable-output"},
		{"config", "get", "--fields", "value", "grace", "--stable-output"},
		{"config", "get", "--stable-output", "--fields=value", "grace"},
		{"config", "get", "--stable-output", "--fields=value", "--", "grace"},
	}
	first := p.run(orders[0]...)
	same := first.succeeded()
	for _, args := range orders[1:] {
		same = same && p.run(args...).out == first.out
	}
	p.need(1, first.succeeded() && p.run(orders[1]...).exit == 0, "flags may stand before the argument")
	p.need(2, same, "with the same result to the byte")
	early := p.run("--stable-output", "config", "get", "grace")
	p.need(2, early.exit == 0 || early.failed(2, "") &&
		early.str("error/corrected_input") == "omniagent config get grace --stable-output",
		"before the command: never misread; refused with the order that works")
	p.need(3, every(p.extensions(), func(_ string, x value) bool { return x.str("option_placement") != "" }),
		"option_placement in the schema")
	p.need(3, early.succeeded(),
		"accepted before the command as well: what begins with an option is for the one-shot form that comes later")
}

func arity(p *probe) {
	for _, dir := range []string{"p1", "p3"} {
		p.write("work/"+dir+"/.omniagent/config.toml", "grace = \"3s\"\n")
		_ = os.MkdirAll(filepath.Join(p.work, dir, ".git"), 0o755)
	}
	r := p.run("trust", "p1", "p2", "p3")
	p.need(1, len(r.list("data/results")) == 3, "one call takes several arguments")
	results := r.list("data/results")
	p.need(2, len(results) == 3 && results[0].yes("ok") && results[1].no("ok") && results[1].str("error/code") != "" &&
		results[2].yes("ok"), "results[] has ok for each, and the error of the one that failed")
	p.need(3, r.failed(3, "PARTIAL_FAILURE"), "ok is false on top when one fails")
	p.need(3, p.extensions()["trust"].str("parameters/path/nargs") == "*" &&
		p.extensions()["config.set"].str("parameters/key/nargs") == "1", "nargs in the schema")
	p.need(3, p.run("config", "set", "grace", "3s", "4s").failed(2, ""), "one argument too many is refused")
}

func scopes(p *probe) {
	p.need(1, every(p.extensions(), func(_ string, x value) bool { return x.has("required_scopes") }),
		"required_scopes with every command of --schema")
	r := p.run("check-permissions", "--for", "config.set")
	p.need(2, r.succeeded() && r.has("data/required_scopes") && r.has("data/active_scopes") &&
		r.has("data/over_privileged"), "check-permissions --for compares them with what is configured")
	env := []string{"OMNIAGENT_SCOPES=repo,admin"}
	over := p.do(call{args: []string{"check-permissions"}, env: env})
	p.need(2, over.yes("data/over_privileged") && over.warned("OVER_PRIVILEGED"), "too many rights are reported")
	p.need(3, p.do(call{args: []string{"config", "get", "grace"}, env: env}).warned("OVER_PRIVILEGED"),
		"on every call: a command that needs no rights does not look at them")
}

func safeDefault(p *probe) {
	p.write("home/.cache/omniagent/old", "12345")
	dry := p.run("cleanup", "--min-age", "0")
	p.need(1, dry.succeeded() && p.exists("home/.cache/omniagent/old"), "without a flag nothing is deleted")
	p.need(2, strings.HasPrefix(dry.str("data/effect"), "would_") && dry.yes("meta/dry_run"),
		"would_* and meta.dry_run:true")
	live := p.run("cleanup", "--min-age", "0", "--live")
	p.need(3, live.succeeded() && live.str("data/effect") == "deleted" && live.no("meta/dry_run") &&
		live.yes("meta/confirmed") &&
		!p.exists("home/.cache/omniagent/old"), "--live does it: dry_run:false, confirmed:true")
	p.need(3, p.extensions()["cleanup"].yes("safe_default") &&
		every(p.extensions(), func(_ string, x value) bool { return x.has("safe_default") }),
		"safe_default in the schema of every command")
	p.need(3, p.commands()["cleanup"].has("flags/live"), "the flag is in the manifest")
}

func streaming(p *probe) {
	p.manyEntries(3)
	plain, off := p.run("audit-log"), p.run("audit-log", "--no-stream")
	p.need(1, plain.envelope(), "a command that can stream gives one JSON unless asked")
	p.need(2, off.envelope() && len(off.list("data/entries")) >= 3, "--no-stream gives the envelope")
	stream := lines(p.run("audit-log", "--stream").out)
	p.need(2, len(stream) > 3 && !slices.ContainsFunc(stream, func(v value) bool { return !v.there }),
		"--stream gives a JSON document a line")
	p.need(3,
		every(p.extensions(), func(_ string, x value) bool {
			return x.no("streaming_default") &&
				x.has("supports_streaming")
		}), "streaming_default in the schema of every command")
	p.need(3, p.run("audit-log", "--stream", "--no-stream").exit == 2, "both at once are refused")
	help := p.run("audit-log", "--help").err
	p.need(3, strings.Contains(help, "--stream") && strings.Contains(help, "JSON rows"),
		"the help says what a stream is made of")
}

func batch(p *probe) {
	calls := `{"_cmd":"version"}` + "\n" + `{"_cmd":"config.get","key":"nothing"}` + "\n" +
		`{"_cmd":"config.set","key":"grace","value":"3s"}` + "\n"
	stopped := p.do(call{args: []string{"exec"}, stdin: calls})
	p.need(1, len(lines(stopped.out)) >= 2 && stopped.exit == 1,
		"three calls in one process; the first failure stops them, status 1")
	on := p.do(call{args: []string{"exec", "--ignore-errors", "--dry-run"}, stdin: calls})
	all := lines(on.out)
	p.need(2, len(all) >= 3 && all[0].yes("ok") && all[1].no("ok") && all[2].yes("ok") && on.exit == 1,
		"--ignore-errors goes on")
	p.need(3, len(all) >= 3 && all[2].str("data/effect") == "would_create" && !p.exists("work/.omniagent"),
		"--dry-run reaches the lines that change something")
	numbered := len(all) >= 3
	for i, v := range all[:min(3, len(all))] {
		numbered = numbered && v.num("meta/_line") == i+1 && v.str("meta/_cmd") != "" &&
			valid("response-envelope.json", v) == nil
	}
	p.need(3, numbered && len(all) == 3, "one envelope a line with meta._line and meta._cmd, and nothing else")
	p.need(3, p.do(call{args: []string{"exec"}, stdin: "no JSON\n"}).exit == 2, "status 2 when no line can be read")
}
