package literal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// modules are run by node too, which must come to the same value. Those of the kind ts are held against want alone.
func modules() []struct{ kind, in, want string } {
	return []struct{ kind, in, want string }{
		{"mjs", `export default {}`, `{}`},
		{"mjs", `export default {defaultAgent: "codex"};`, `{"defaultAgent":"codex"}`},
		{"mjs", "#!/usr/bin/env node\n'use strict'\nexport default { a: 1 }\n", `{"a":1}`},
		{"mjs", "\uFEFFexport default { a: 1 }", `{"a":1}`},
		{"mjs", "// one\r\n/* two\r\n*/ export /**/ default /**/ {\r\n a: 1, // three\r\n}\r\n", `{"a":1}`},
		{"mjs", `export default ({a: 1})`, `{"a":1}`},
		{"mjs", `export default (((({a: (1)}))))`, `{"a":1}`},
		{"mjs", `export default null`, `null`},
		{"mjs", `export default undefined;`, `null`},
		{"mjs", `export default {"a": 'b', 'c': "d", e: ` + "`f\\n\"`" + `}`, `{"a":"b","c":"d","e":"f\n\""}`},
		{"mjs", "export default `a\r\nb\\\nc$ {`", `"a\nbc$ {"`},
		{"mjs", `export default "\x41\u0042\v\0\q\'"`, `"AB\u000b\u0000q'"`},
		{"mjs", `export default [0x1F, .5, 5., 1e3, -1, +3, -0x10]`, `[31,0.5,5,1e3,-1,3,-16]`},
		{"mjs", `export default {get: 1, async: 3, true: 6, default: 7}`, `{"get":1,"async":3,"true":6,"default":7}`},
		{
			"mjs", "import path from \"node:path\"\nimport { join as j } from 'node:path'; import * as os from " +
				"\"node:os\"; import \"node:fs\";\nexport default {a: 1}", `{"a":1}`,
		},
		{"mjs", `export default {größe: 1, $a_1: 2}`, `{"größe":1,"$a_1":2}`},
		{"mjs", "export default {a: 'x\\\ny', b: \"\u2028\"}", "{\"a\":\"xy\",\"b\":\"\u2028\"}"},
		{"cjs", `module.exports = {a: 1}`, `{"a":1}`},
		{"cjs", `'use strict'; module.exports = {a: 1};`, `{"a":1}`},
		{"cjs", `module . exports /**/ = ({a: 1})`, `{"a":1}`},
		{"cjs", "const { join, sep: s } = require(\"node:path\")\nvar os = require('node:os'); module.exports = " +
			"{a: 1};", `{"a":1}`},
		{"cjs", `module.exports = null`, `null`},
		{"cjs", `module.exports = {"a": [{"b": [[]]}], c: -1.5e-3}`, `{"a":[{"b":[[]]}],"c":-1.5e-3}`},

		{"ts", `import { defineConfig } from "omniagent"; export default defineConfig({a: 1})`, `{"a":1}`},
		{
			"ts", `import type { Config } from "omniagent"; import { defineConfig } from "omniagent"; ` +
				`export default defineConfig<Config>({a: 1},)`, `{"a":1}`,
		},
		{"ts", `const { defineConfig } = require("omniagent"); module.exports = defineConfig({a: 1})`, `{"a":1}`},
		{"ts", `import defineConfig = require("omniagent"); export = defineConfig({a: 1}) as C;`, `{"a":1}`},
		{
			"ts", "import type { Config } from './x' with { type: 'json' }\nexport default {\n  a: 1,\n} satisfies " +
				"Config\n", `{"a":1}`,
		},
		{
			"ts", "export default { a: ['x'] as const, b: 'y' as y.Z[], } as const satisfies " +
				"Partial<Record<string, unknown>>;", `{"a":["x"],"b":"y"}`,
		},
		{"ts", `export default ({a: 1} satisfies Config) as Config`, `{"a":1}`},
	}
}

func TestParseJSReadsModules(t *testing.T) {
	for _, c := range modules() {
		v, err := ParseJS([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := string(v.JSON()); !sameJSON(t, got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Errorf("%s, %s: %v", a, b, err)
		return false
	}
	return reflect.DeepEqual(x, y)
}

// TestParseJSAgreesWithNode runs the modules that node can run.
func TestParseJSAgreesWithNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not on PATH: there is nothing to compare with")
	}
	dir, names := t.TempDir(), []string{}
	for i, c := range modules() {
		if c.kind == "ts" {
			continue
		}
		name := fmt.Sprintf("m%d.%s", i, c.kind)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.in), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	list, _ := json.Marshal(names)
	run := `const out = {}; for (const name of ` + string(list) + `) { try {
		const m = await import("./" + name); 
		out[name] = JSON.stringify(m.default === undefined ? null : m.default)
		} catch (e) { out[name] = "error: " + e.message } } process.stdout.write(JSON.stringify(out))`
	if err := os.WriteFile(filepath.Join(dir, "run.mjs"), []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "run.mjs")
	cmd.Dir = dir
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	for i, c := range modules() {
		theirs, ran := out[fmt.Sprintf("m%d.%s", i, c.kind)]
		if !ran {
			continue
		}
		v, err := ParseJS([]byte(c.in))
		if err != nil || strings.HasPrefix(theirs, "error") || !sameJSON(t, string(v.JSON()), theirs) {
			t.Errorf("%s:\nours %s %v\nnode %s", c.in, v.JSON(), err, theirs)
		}
	}
	if len(out) < 20 {
		t.Errorf("only %d modules were compared", len(out))
	}
}

func TestParseJSRefusesCode(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`export default {a: pick(), b: 1}`, `1:20: this is code, not a literal (pick(), b: 1})`},
		{`export default {a: process.env.X}`, `1:20: this is code`},
		{`export default {a: "x" + "y"}`, `1:24: expected ',' or '}' after a member, found '+'`},
		{"export default {a: `x${y}`}", "1:20: this is code"},
		{`export default {a: () => 1}`, `1:21: expected a value, found ')'`},
		{`export default {a: /x/g}`, `1:20: this is code`},
		{`export default {f() { return 1 }}`, `1:18: expected ':' after the key "f", found '('`},
		{`export default {get f() { return 1 }}`, `1:21: expected ':' after the key "get", found 'f'`},
		{`export default {...other}`, `1:17: expected a key or '}', found '.'`},
		{`export default {[name]: 1}`, `1:17: expected a key or '}', found '['`},
		{`export default [1, ...other]`, `1:21: expected a digit, found '.'`},
		{`export default make({a: 1})`, `1:16: this is code`},
		{`export default defineConfig({a: 1}, 2)`, `1:37: expected ')' after the value, found '2'`},
		{`export default defineConfig.x({a: 1})`, `1:28: expected '(' after defineConfig, found '.'`},
		{`export default defineConfig({a: 1}).b`, `1:36: expected nothing after the exported value, found '.'`},
		{`export default {a: 1}.a`, `1:22: expected nothing after the exported value, found '.'`},
		{"export default {a: 1}\ndone()", `2:1: expected nothing after the exported value, found 'd'`},
		{`export default {}; export default {}`, `1:20: expected nothing after the exported value, found 'e'`},
		{"const a = {}\nexport default a", `1:1: this is code, not a literal (const a = {})`},
		{`const a = require(b); export default {}`, `1:19: expected the name of a module in quotes, found 'b'`},
		{`const a = require("b").c; export default {}`, `1:23: expected ';' or the end of the line, found '.'`},
		{"start()\nexport default {}", `1:1: this is code, not a literal (start())`},
		{`export const a = 1`, `1:1: this is code`},
		{`export { default } from "./x"`, `1:1: this is code`},
		{`exports.a = 1`, `1:1: this is code`},
		{`module.exports.a = 1`, `1:1: this is code`},
		{`moduleX.exports = {}`, `1:1: this is code`},
		{`import x from y; export default {}`, `1:16: expected the name of a module in quotes, found ';'`},
		{`import("x")`, `1:7: expected the name of a module in quotes, found '('`},
	} {
		_, err := ParseJS([]byte(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestParseJSNamesThePlace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `1:1: expected export default {…} or module.exports = {…}, found end of input`},
		{`import "a"`, `1:11: expected export default {…} or module.exports = {…}, found end of input`},
		{`export default`, `1:15: expected a value, found end of input`},
		{"export default {\n  a: 1\n  b: 2\n}", `3:3: expected ',' or '}' after a member, found 'b'`},
		{`export default {a 1}`, `1:19: expected ':' after the key "a", found '1'`},
		{`export default {a: }`, `1:20: expected a value, found '}'`},
		{`export default {a: 1`, `1:21: expected ',' or '}' after a member, found end of input`},
		{`export default {a: [1, 2}`, `1:25: expected ',' or ']' after an item, found '}'`},
		{`export default ({a: 1}`, `1:23: expected ')' after the value, found end of input`},
		{`export default {a: "x}`, `1:23: expected " to close the string, found end of input`},
		{"export default {a: \"x\n}", `1:22: expected " to close the string, found end of line`},
		{"export default {a: `x}", "1:23: expected ` to close the template of 1:20, found end of input"},
		{`export default {a: 1, a: 2}`, `1:23: key "a" is given twice, first at 1:17`},
		{`export default {__proto__: {a: 1}}`, `1:17: the key __proto__ cannot be configured`},
		{`export default {a: 010}`, `1:20: a number must not begin with 0`},
		{`export default {a: 1_0}`, `1:21: expected the end of the number, found '_'`},
		{`export default {a: 10n}`, `1:22: expected the end of the number, found 'n'`},
		{`export default {} foo`, `1:19: expected nothing after the exported value, found 'f'`},
		{`export default {} as 1`, `1:22: expected the name of a type, found '1'`},
		{`export default {} as A<B`, `1:25: expected ',' or '>' after a type, found end of input`},
		{`/* x`, `1:1: the comment is not closed with */`},
		{"export default {a: \"\xff\"}", `1:21: byte 0xFF is not UTF-8`},
		{"\xff\xfe{}", `1:1: expected JavaScript, found byte 0xFF, which is not UTF-8`},
		{"export default {a: \x00}", `1:20: expected JavaScript, found U+0000`},
		{`export default ` + strings.Repeat("[", 201), `1:216: nested deeper than 200 levels`},
		{`export default ` + strings.Repeat("(", 201), `1:216: nested deeper than 200 levels`},
		{`export default {} as ` + strings.Repeat("A<", 100000), `1:424: nested deeper than 200 levels`},
		{strings.Repeat("import ", 100000), ``},
		{strings.Repeat("const ", 100000), ``},
	} {
		_, err := ParseJS([]byte(c.in))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || c.want != "" && err.Error() != c.want {
			t.Errorf("%.80s:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestParseJSKnowsPlaces(t *testing.T) {
	v, err := ParseJS([]byte("// ä\nexport default {\n  ä: 'ü', c: (1) as const}"))
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := v.Member("ä"); a.KeyPos.String() != "3:3" || a.Value.Pos.String() != "3:6" {
		t.Errorf("got %+v", a)
	}
	if c, _ := v.Member("c"); c.Value.Pos.String() != "3:15" || v.Pos.String() != "2:16" {
		t.Errorf("got %+v in %v", c, v.Pos)
	}
}

func FuzzJS(f *testing.F) {
	for _, c := range modules() {
		f.Add([]byte(c.in))
	}
	for _, seed := range []string{
		`{"a": [1, {b: 'x'}], /* c */ d: +.5,}`,
		`export default {f: async <T>({a = 1}: X<Y>): Z => { /}/ }, g() {}}`, `{a: "\ud800", "b": -0x1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseJS(data)
		if err == nil && !json.Valid(v.JSON()) {
			t.Fatalf("%q: JSON() is not JSON: %s", data, v.JSON())
		}
		same, err := ParseJSON5(data)
		if err != nil || same.Kind != Object {
			return
		}
		v, err = ParseJS(append([]byte("export default "), data...))
		if err != nil {
			if strings.Contains(err.Error(), "__proto__") {
				return // stricter on purpose
			}
			t.Fatalf("%q: %v", data, err)
		}
		if string(v.JSON()) != string(same.JSON()) || v.Pos.Offset != same.Pos.Offset+15 || v.End != same.End+15 {
			t.Fatalf("%q: got %s, want %s", data, v.JSON(), same.JSON())
		}
	})
}
