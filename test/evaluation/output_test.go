//go:build unix

package evaluation

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// What comes out: §1 to §9.

func outputModes() []mode {
	return []mode{
		{1, "Critical", "Exit codes", "", exitCodes},
		{2, "Critical", "Output format", "", outputFormat},
		{3, "High", "stderr and stdout", "", streams},
		{4, "Medium", "Verbosity", "", verbosity},
		{5, "High", "Pagination", "", pagination},
		{6, "Medium", "Composition", "", composition},
		{7, "Medium", "Non-determinism", "", determinism},
		{8, "High", "ANSI escapes", "", escapes},
		{9, "High", "Binary and encoding", "", encoding},
	}
}

func exitCodes(p *probe) {
	seen := map[string]*result{
		"config.get":        p.run("config", "get"),
		"check-permissions": p.run("check-permissions", "--for", "nothing.of.the.kind"),
		"exec":              p.run("exec"),
		"trust":             p.run("trust", "missing-directory"),
		"version":           p.run("version"),
	}
	distinct, equal, declared := map[int]bool{}, true, true
	for name, r := range seen {
		distinct[r.exit] = true
		equal = equal && (r.succeeded() || r.exit > 0 && r.failed(r.exit, ""))
		declared = declared && p.commands()[name].has("exit_codes/"+fmt.Sprint(r.exit))
	}
	p.need(1, seen["version"].exit == 0 && seen["config.get"].exit > 0 && seen["trust"].exit > 0,
		"success is 0, failures are not")
	p.need(2, len(distinct) >= 4,
		"a missing argument, an unknown id, missing input and success have codes of their own")
	p.need(2, seen["config.get"].exit == 2, "a missing argument is 2")
	p.need(3, equal, "error.exit_code and meta.exit_code equal the status")
	p.need(3, declared, "each status seen is declared by its command")
	p.need(3, every(p.commands(), func(_ string, e value) bool {
		return e.has("exit_codes/0") && e.has("exit_codes/2") &&
			every(members(e.at("exit_codes")), func(_ string, x value) bool {
				return x.str("description") != "" && x.has("retryable") && x.str("side_effects") != ""
			})
	}), "every command lists its codes in the schema, each with description, retryable and side_effects")
}

// members are the members of an object.
func members(v value) map[string]value {
	all := map[string]value{}
	for _, name := range v.keys() {
		all[name] = v.at(name)
	}
	return all
}

func outputFormat(p *probe) {
	none := p.run("trust", "list", "--output", "json")
	one := p.run("agents", "list", "--limit", "1", "--output", "json")
	many := p.run("errors", "list", "--output", "json")
	wrong := p.run("config", "get", "nothing", "--output", "json")
	all := []*result{none, one, many, wrong}
	p.need(1, !slices.ContainsFunc(all, func(r *result) bool { return !r.there }),
		"--output json is JSON for success and failure")
	p.need(2,
		!slices.ContainsFunc(all, func(r *result) bool { return valid("response-envelope.json", r.value) != nil }),
		"the envelope passes the published schema for 0, 1 and N rows and for a failure")
	p.need(2, len(none.list("data/trusted")) == 0 && len(one.list("data/agents")) == 1 &&
		len(many.list("data/errors")) > 1, "rows keep one shape whatever their number")
	bare := p.run("errors", "list")
	ci := p.do(call{args: []string{"errors", "list"}, env: []string{"CI=true"}})
	p.need(3, bare.succeeded() && ci.succeeded(), "JSON without a flag off a terminal and in CI")
	p.need(3, bare.str("meta/request_id") != "" && bare.str("meta/request_id") != ci.str("meta/request_id") &&
		bare.num("meta/duration_ms") >= 0, "meta has a request_id of its own and duration_ms")
}

func streams(p *probe) {
	clean := true
	for _, c := range p.safeCalls() {
		r := p.run(c...)
		clean = clean && r.exit >= 0 && (r.there || plainByDesign(c, r))
	}
	p.need(1, clean, "standard output of every reading command is only its result")
	warned := p.run("config", "set", "grace", "3s", "--global")
	p.need(2, warned.succeeded() && warned.warned("GLOBAL_CONFIG_MODIFIED"), "warnings stand in the JSON")
	failed := p.run("config", "get", "nothing")
	p.need(2, failed.envelope() && failed.err != "", "errors are told to people on standard error")
	help := p.run("config", "set", "--help")
	p.need(3, help.exit == 0 && help.there && help.yes("meta/help") && strings.Contains(help.err, "Usage:"),
		"help goes to standard error, with JSON on standard output")
	quiet := p.run("config", "get", "nothing", "--quiet")
	p.need(3, quiet.exit == failed.exit && quiet.err == "" && quiet.envelope(),
		"--quiet leaves 0 bytes on standard error")
	strict := p.run("config", "set", "grace", "4s", "--global", "--warnings-as-errors")
	p.need(3, strict.failed(1, "WARNINGS_AS_ERRORS"), "--warnings-as-errors ends with 1")
}

// plainByDesign are results that are no JSON because another program reads them: a bare version, a script for a shell,
// lines.
func plainByDesign(args []string, r *result) bool {
	if slices.Contains(args, "jsonl") {
		return !slices.ContainsFunc(lines(r.out), func(v value) bool { return !v.there })
	}
	return args[0] == "completion" || slices.Contains(args, "id") || slices.Contains(args, "plain")
}

func verbosity(p *probe) {
	ci := []string{"CI=true"}
	plain := p.do(call{args: []string{"config", "list"}, env: ci})
	p.need(1, plain.exit == 0 && plain.there, "in CI standard output is JSON and nothing else")
	p.need(2, plain.exit == 0 && plain.err == "", "in CI nothing is on standard error without --quiet")
	some := p.do(call{args: []string{"config", "list", "--fields", "key,value"}, env: ci})
	rows := some.list("data/settings")
	p.need(3, len(rows) > 0 &&
		!slices.ContainsFunc(rows, func(v value) bool { return !slices.Equal(v.keys(), []string{"key", "value"}) }),
		"--fields keeps only what is named")
	p.need(3, every(p.enveloped(), func(_ string, e value) bool { return e.has("flags/fields") }),
		"every command with an envelope has --fields")
	p.need(3, strings.Count(plain.out, "\n") == 1, "one line of JSON, no other")
}

// manyEntries makes calls enough for several pages of the audit log.
func (p *probe) manyEntries(n int) {
	p.write("work/calls.jsonl", strings.Repeat(`{"_cmd":"config.get","key":"output"}`+"\n", n))
	p.run("exec", "--input-file", "calls.jsonl")
}

func pagination(p *probe) {
	p.manyEntries(120)
	first := p.run("audit-log")
	n := len(first.list("data/entries"))
	p.need(1, first.succeeded() && n > 0 && n <= 100, "a list of more than 100 stops at %d rows by itself", n)
	second := p.do(call{args: []string{"audit-log", "--cursor", first.str("meta/cursor")}, secret: true})
	a, b := first.list("data/entries"), second.list("data/entries")
	p.need(2, first.yes("meta/pagination/has_more") && first.str("meta/pagination/next_cursor") != "",
		"has_more and next_cursor are there")
	p.need(2, len(b) == n && n > 0 && a[n-1].str("request_id") != b[0].str("request_id"),
		"--cursor brings the next page")
	p.need(3, first.yes("meta/truncated") && first.yes("meta/pagination/truncated"),
		"truncated is true when rows are left out")
	p.need(3, every(members(first.at("meta/pagination")), func(string, value) bool { return true }) &&
		first.num("meta/pagination/total") >= 120 &&
		first.num("meta/pagination/returned") == n, "the pagination object has total and returned")
	stream := p.run("audit-log", "--stream", "--limit", "0")
	all := lines(stream.out)
	p.need(3, len(all) > 100 && all[len(all)-1].yes("_summary") && all[0].str("request_id") != "",
		"--stream gives a row a line and a summary last")
}

func composition(p *probe) {
	ids := p.run("config", "list", "--output", "id", "--limit", "0")
	names := strings.Fields(ids.out)
	p.need(1, ids.exit == 0 && slices.Contains(names, "output") && !strings.ContainsAny(ids.out, " {\t"),
		"--output id prints bare ids, one a line")
	piped := p.do(call{args: []string{"config", "get", "-"}, stdin: "output\n"})
	p.need(2, piped.succeeded() && piped.str("data/key") == "output", "get --output id | get - works")
	p.need(3, every(p.enveloped(), func(_ string, e value) bool {
		return slices.Contains(e.strings("flags/output/enum_values"), "id")
	}), "every command with an envelope has --output id")
	p.need(3, every(p.envelopedExtensions(), func(_ string, x value) bool {
		return every(withNone(members(x.at("parameters"))), func(_ string, param value) bool {
			return !param.has("position") || param.str("pattern_type") != "alphanumeric_id" ||
				param.yes("stdin_fallback") || param.has("enum_values")
		})
	}), "every id argument takes - for standard input")
	p.write("work/calls.jsonl", `{"_cmd":"config.get","key":"output"}`+"\n")
	file := p.run("exec", "--input-file", "calls.jsonl")
	p.need(3, file.succeeded() && file.str("data/key") == "output", "structured input comes from a file")
	p.note("--from-file is read as exec --input-file, which takes any command's arguments")
}

// withNone makes an empty object pass.
func withNone(all map[string]value) map[string]value {
	if len(all) == 0 {
		return map[string]value{"": {}}
	}
	return all
}

func determinism(p *probe) {
	same, stable := true, true
	for _, c := range p.safeCalls() {
		if c[0] == "audit-log" || c[0] == "status" || slices.Contains(c, "jsonl") {
			continue // what they show was changed by the call before
		}
		a, b := p.run(c...), p.do(call{args: c, secret: true})
		same = same && a.exit >= 0 && a.exit == b.exit && a.at("data").text() == b.at("data").text() &&
			a.there == b.there
		x, y := p.do(call{args: append(slices.Clone(c), "--stable-output"), secret: true}),
			p.do(call{args: append(slices.Clone(c), "--stable-output"), secret: true})
		stable = stable && x.exit >= 0 && x.out == y.out
	}
	p.need(1, same, "the same call gives the same data")
	dry := []*result{
		p.run("config", "set", "grace", "5s", "--dry-run"),
		p.run("config", "set", "grace", "5s", "--dry-run"),
	}
	p.need(2, dry[0].succeeded() && dry[0].at("data").text() == dry[1].at("data").text(),
		"a dry run gives the same data each time")
	x, y := p.run("manifest"), p.run("manifest")
	p.need(2, strings.HasPrefix(x.str("data/etag"), "sha256:") && x.str("data/etag") == y.str("data/etag"),
		"the etag is a hash of the content")
	p.need(3, stable && len(p.commands()) > 0, "--stable-output is the same to the byte")
	p.need(3, every(p.extensions(), func(_ string, x value) bool { return x.has("volatile_fields") }) &&
		len(p.extensions()["audit-log"].list("volatile_fields")) > 0,
		"the schema names the volatile fields of every command")
}

func escapes(p *probe) {
	clean := true
	for _, env := range [][]string{
		nil,
		{"TERM=xterm-256color", "CLICOLOR_FORCE=1", "FORCE_COLOR=3"},
		{"NO_COLOR=1"},
		{"CI=true"},
		{"TERM=dumb"},
	} {
		for _, args := range append(p.safeCalls(), []string{"--help"}, []string{"config", "get", "nothing"}) {
			r := p.do(call{args: args, env: env})
			clean = clean && r.exit >= 0 && !strings.Contains(r.out+r.err, "\x1b")
		}
	}
	p.need(1, clean, "no escape byte on either stream with NO_COLOR, CI or TERM=dumb")
	p.need(2, clean, "nor off a terminal when variables ask for colour")
	colour := "\x1b[31mred\x1b[0m"
	wrong := p.run("config", "get", colour)
	trusted := p.run("trust", "missing-"+colour)
	p.need(3, wrong.exit > 0 && trusted.exit > 0 && !strings.Contains(wrong.out+wrong.err+trusted.out+trusted.err,
		"\x1b") && !strings.Contains(wrong.out+trusted.out, `\u001b`), "escape sequences in the input do not come back")
}

func encoding(p *probe) {
	p.write("work/.omniagent/config.toml", "grace = \"3s\xff\xfe\"\n")
	r := p.run("config", "path")
	torn := p.run("config", "get", "grace", "--config", ".omniagent/config.toml")
	p.need(1, r.envelope() && torn.envelope() && torn.exit > 0, "a file that is not UTF-8 gives a structured result")
	_ = os.Remove(p.work + "/.omniagent/config.toml")
	arg := p.run("trust", "missing-\xff\xfe")
	p.need(2, arg.envelope() && strings.Contains(arg.out, "\uFFFD"), "bytes that are no text become U+FFFD")
	p.do(call{args: []string{"exec"}, stdin: `{"_cmd":"config.get","key":"a\u0000b"}` + "\n"})
	log := p.run("audit-log")
	p.need(2, log.succeeded() && !strings.Contains(log.out, `\u0000`) && strings.Contains(log.out, "\uFFFD"),
		"NUL becomes U+FFFD")
	p.need(3, every(p.enveloped(), func(_ string, e value) bool {
		return slices.Equal(e.strings("flags/binary-mode/enum_values"), []string{"base64", "hex", "skip"})
	}), "every command with an envelope has --binary-mode base64, hex, skip")
	p.need(3, strings.Contains(p.s.schema().out, `"encoding"`),
		"a command returns bytes as {type, encoding, value}: none has bytes to return yet")
}
