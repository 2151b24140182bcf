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
	"time"
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
		{"mjs", `export default void 0`, `null`},
		{"mjs", `export default [1, , 2, ,]`, `[1,null,2,null]`},
		{"mjs", `export default [,]`, `[null]`},
		{"mjs", `export default {a: undefined, b: [undefined], c: null}`, `{"b":[null],"c":null}`},
		{"mjs", `export default {"a": 'b', 'c': "d", e: ` + "`f\\n\"`" + `}`, `{"a":"b","c":"d","e":"f\n\""}`},
		{"mjs", "export default `a\r\nb\\\nc\\u{1F600}$ {`", `"a\nbc😀$ {"`},
		{"mjs", `export default "\x41\u0042\u{43}\v\0\q\'"`, `"ABC\u000b\u0000q'"`},
		{
			"mjs", `export default [0x1F, 0b11, 0o17, 1_000, 0xF_F, .5, 5., 1e3, -1, - 2, +3, -0x10, 1_0.0_1]`,
			`[31,3,15,1000,255,0.5,5,1e3,-1,-2,3,-16,10.01]`,
		},
		{"mjs", `export default [true, false, !0, !1]`, `[true,false,true,false]`},
		{
			"mjs", `export default {1: 'a', 0x10: 'b', 1.50: 'c', 1e21: 'd', 1e-7: 'e', .5: 'f', 1e3: 'g'}`,
			`{"1":"a","16":"b","1.5":"c","1e+21":"d","1e-7":"e","0.5":"f","1000":"g"}`,
		},
		{"mjs", `export default {["a"]: 1, ['b' ]: 2, [` + "`c`" + `]: 3, [4]: 4}`, `{"a":1,"b":2,"c":3,"4":4}`},
		{
			"mjs", `export default {get: 1, set: 2, async: 3, static: 4, of: 5, true: 6, default: 7}`,
			`{"get":1,"set":2,"async":3,"static":4,"of":5,"true":6,"default":7}`,
		},
		{"mjs", `const config = {a: 1}; export default config`, `{"a":1}`},
		{"mjs", "const config = {a: 1}\nexport default config\n", `{"a":1}`},
		{"mjs", `let config = {a: 1}, other = 2; export { config as default, other }`, `{"a":1}`},
		{"mjs", `export { config as default }; const config = {a: 1}`, `{"a":1}`},
		{"mjs", `export { config as "default" }; var config = {a: 1}`, `{"a":1}`},
		{"mjs", `export const name = "x"; export default { name, again: name }`, `{"name":"x","again":"x"}`},
		{"mjs", `const base = {a: 1, b: 2}; export default {...base, b: 3, c: 4}`, `{"a":1,"b":3,"c":4}`},
		{"mjs", `const base = {a: 1, b: 2}; export default {b: 3, ...base, ...null, ...undefined}`, `{"b":2,"a":1}`},
		{"mjs", `const base = {a: undefined}; export default {a: 1, ...base}`, `{}`},
		{"mjs", `const list = [1, 2]; export default [0, ...list, 3, ...[4]]`, `[0,1,2,3,4]`},
		{"mjs", `const d = {x: {y: "z"}}; export default {a: d.x.y, b: d.x}`, `{"a":"z","b":{"y":"z"}}`},
		{"mjs", `const k = "key"; export default {[k]: 1}`, `{"key":1}`},
		{"mjs", `const a = 1, b = [a], c = {b}; export default c`, `{"b":[1]}`},
		{"mjs", `import path from "node:path"; import { join as j } from 'node:path'; import * as os from "node:os"; import "node:fs"; export default {a: 1}`, `{"a":1}`},
		{"mjs", "import fs from 'node:fs'\nconst x = fs.existsSync('/nowhere')\nexport default {a: 1}", `{"a":1}`},
		{"mjs", `export default {a: 1}; export const b = 2; export function f() { return 3 } export class C { x = "}" }`, `{"a":1}`},
		{
			"mjs", "function f(a = '}') { return /[}/\"]/.test(a) ? `${`${a}`}` : a / 2 / 3 }\nexport default {a: 1}",
			`{"a":1}`,
		},
		{"mjs", "const f = (a) => { return a }\nconst g = async x => x\nexport default {a: 1}", `{"a":1}`},
		{"mjs", "function f(a) { if (a) { }\n/[}'\"]/.test(a) }\nexport default {a: 1}", `{"a":1}`},
		{"mjs", "if (1 < 2) { var z = 1 } else if (3) z = 2; else z = 3\nfor (const i of [1]) { z = i }\ntry { z() } " +
			"catch (e) { z = /'/ } finally { z = 0 }\nexport default {a: 1}", `{"a":1}`},
		{"mjs", "switch (1) { case 1: break; default: }\ndo { } while (0)\nlabel: for (;;) { break label }\nexport " +
			"default {a: 1}", `{"a":1}`},
		{"mjs", "let n = 1\nn++\n;[1].map(x => x)\nconst m = n\n  + 2\nexport default {a: 1}", `{"a":1}`},
		{"mjs", `const secret = "x"; console.error === secret; export default {a: secret}`, `{"a":"x"}`},
		{"mjs", `export default {größe: 1, $a_1: 2}`, `{"größe":1,"$a_1":2}`},
		{"mjs", "export default {a: 'x\\\ny', b: \"\u2028\"}", "{\"a\":\"xy\",\"b\":\"\u2028\"}"},
		{"mjs", `const config = Object.freeze, c2 = {a: 1}; export default c2`, `{"a":1}`},
		{"cjs", `module.exports = {a: 1}`, `{"a":1}`},
		{"cjs", `'use strict'; module.exports = {a: 1};`, `{"a":1}`},
		{"cjs", `module . exports /**/ = ({a: 1})`, `{"a":1}`},
		{"cjs", `module["exports"] = {a: 1}`, `{"a":1}`},
		{"cjs", `exports.default = {a: 1}`, `{"a":1}`},
		{"cjs", `module.exports.default = {a: 1};`, `{"a":1}`},
		{"cjs", `module.exports = exports = {a: 1}; exports.b = 2`, `{"a":1,"b":2}`},
		{"cjs", `module.exports = {a: 1}; module.exports.b = 2;`, `{"a":1,"b":2}`},
		{"cjs", `module.exports = {a: 1}; module.exports = {b: 2}`, `{"b":2}`},
		{"cjs", `exports.a = 1; exports.b = {c: 2}`, `{"a":1,"b":{"c":2}}`},
		{"cjs", `"use strict"; Object.defineProperty(exports, "__esModule", { value: true }); exports.default = void 0; const _default = {a: 1}; exports.default = _default;`, `{"a":1}`},
		{"cjs", `exports.__esModule = true; exports.default = {a: 1}`, `{"a":1}`},
		{"cjs", `const { join } = require("node:path"), os = require('node:os'); const config = {a: 1}; module.exports = config;`, `{"a":1}`},
		{"cjs", `const { structuredClone: defineConfig } = require("node:vm"); module.exports = {a: 1}`, `{"a":1}`},
		{"cjs", `var config = {a: 1}; module.exports = config; module.exports.default = config`, `{"a":1}`},
		{"cjs", `module.exports = null`, `null`},
		{"cjs", `module.exports = {"a": [{"b": [[]]}], c: -1.5e-3}`, `{"a":[{"b":[[]]}],"c":-1.5e-3}`},

		{"ts", `import { defineConfig } from "omniagent"; export default defineConfig({a: 1})`, `{"a":1}`},
		{"ts", `import type { Config } from "omniagent"; import { defineConfig as define } from "omniagent"; export default define<Config>({a: 1},)`, `{"a":1}`},
		{"ts", `const { defineConfig } = require("omniagent"); module.exports = defineConfig({a: 1})`, `{"a":1}`},
		{"ts", `import defineConfig = require("omniagent"); const c = defineConfig({a: 1}); export = c;`, `{"a":1}`},
		{"ts", "import type { Config } from './x' with { type: 'json' }\nexport default {\n  a: 1,\n} satisfies " +
			"Config\n", `{"a":1}`},
		{"ts", "export default { a: ['x'] as const, b: 'y' as 'y' | \"z\", c: 1! } as const satisfies " +
			"Partial<Record<string, unknown>>;", `{"a":["x"],"b":"y","c":1}`},
		{"ts", `export default <const>{a: 1}`, `{"a":1}`},
		{"ts", `export default <Config<string, {x: 1}>>{a: <any>1}`, `{"a":1}`},
		{"ts", "const config: Config = {a: 1}\nexport default config\n", `{"a":1}`},
		{
			"ts", `const config: { a: number; f: (x: Map<string, number>) => void }[] = [{a: 1}]; export = config`,
			`[{"a":1}]`,
		},
		{"ts", "type Id = 'a' | `b${string}`\ntype F<T extends object = {}> = T extends { x: infer U } ? U[] : " +
			"never;\ninterface X<T> extends Y<T>, Z { a: '}'; b(): void }\nexport type { Q } from './q'\nexport " +
			"interface W { a: 1 }\nexport default {a: 1} as X<Id>", `{"a":1}`},
		{
			"ts", "declare const env: string;\ndeclare global { interface Window { x: 1 } }\ndeclare module 'x' { " +
				"export const y: 1 }\ndeclare function f(a: string): void\nenum E { A = 'a' }\nexport default {a: 1}",
			`{"a":1}`,
		},
		{"ts", "abstract class A<T> extends B<T> implements C, D { private x: string = '}' }\nfunction over(a: " +
			"string): void;\nfunction over<T>(a: T): asserts a is T { }\nexport default {a: 1}", `{"a":1}`},
		{"ts", `type Config = {a: 1}; export default ({a: 1} satisfies Config) as Config`, `{"a":1}`},
		{"ts", `export default null as Config | null`, `null`},
		{
			"ts", `const a = 'x' as unknown as import('./y').Z<1>['q']; export default { a } as typeof import("./z")`,
			`{"a":"x"}`,
		},
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
		const m = await import("./" + name); let v = m.default;
		if (name.endsWith(".cjs") && v && typeof v === "object") v = v.default ?? v; if (v && typeof v === "object") delete v.__esModule
		out[name] = JSON.stringify(v === undefined ? null : v, (key, x) => key === "default" && x === v ? undefined : x) } catch (e) { out[name] = "error: " + e.message } } process.stdout.write(JSON.stringify(out))`
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
	if len(out) < 50 {
		t.Errorf("only %d modules were compared", len(out))
	}
}

func TestParseJSKeepsCode(t *testing.T) {
	for _, c := range []struct{ in, path, want string }{
		{`export default {a: 1, hooks: {preSync: () => { return "}" }}}`, "hooks preSync", `1:40 () => { return "}" }`},
		{
			`export default {hooks: {async pre({ dir }, x = "}") { await dir }, b: 1}, a: 1}`, "hooks pre",
			`1:25 async pre({ dir }, x = "}") { await dir …`,
		},
		{
			`export default {f({ a }: X<Y, Z>): Promise<Map<string, X>> { }, a: 1}`, "f",
			`1:17 f({ a }: X<Y, Z>): Promise<Map<string, X…`,
		},
		{
			`export default {f: async (a: Map<string, X>): Promise<Record<string, X>> => { }, a: 1}`, "f",
			`1:20 async (a: Map<string, X>): Promise<Recor…`,
		},
		{`export default {f: ({ a, b = 2 }) => a, a: 1}`, "f", `1:20 ({ a, b = 2 }) => a`},
		{`export default {f: new Map<string, number>(), a: 1}`, "f", `1:20 new Map<string, number>()`},
		{`export default {f: x as Record<string, number>, a: 1}`, "f", `1:20 x as Record<string, number>`},
		{`export default {get f() { return 1 }, set f(v) { }, a: 1}`, "f", `1:39 set f(v) { }`},
		{`export default {*f() { }, a: 1}`, "f", `1:17 *f() { }`},
		{`export default {f: process.env.X ?? "y", a: 1}`, "f", `1:20 process.env.X ?? "y"`},
		{`export default {f: a ? b : c, a: 1}`, "f", `1:20 a ? b : c`},
		{`export default {f: a ? (b) : (c), a: 1}`, "f", `1:20 a ? (b) : (c)`},
		{"export default {f: `x${y + `}`}`, a: 1}", "f", "1:20 `x${y + `}`}`"},
		{`export default {f: "a" + "b", a: 1}`, "f", `1:20 "a" + "b"`},
		{`export default {f: /[/}]'/g, a: 1}`, "f", `1:20 /[/}]'/g`},
		{`export default {f: function () { return 1 / 2 / 3 }, a: 1}`, "f", `1:20 function () { return 1 / 2 / 3 }`},
		{`export default {f: class extends X { a = 1 }, a: 1}`, "f", `1:20 class extends X { a = 1 }`},
		{`export default {f: [1, 2].concat([3]), a: 1}`, "f", `1:20 [1, 2].concat([3])`},
		{`export default {f: 'x'.length, a: 1}`, "f", `1:20 'x'.length`},
		{`export default {f: {b: 1, ...other}, a: 1}`, "f", `1:27 ...other`},
		{`export default {f: [1, ...other()], a: 1}`, "f", `1:24 ...other()`},
		{`export default {f: {[name]: 1}, a: 1}`, "f", `1:21 [name]: 1`},
		{`export default {f: unknown, a: 1}`, "f", `1:20 unknown`},
		{`const g = () => 1; export default {f: g, a: 1}`, "f", `1:39 g`},
		{`const g = {a: 1}; export default {f: g.b, a: 1}`, "f", `1:38 g.b`},
		{`export default {f: a < b, a: 1}`, "f", `1:20 a < b`},
		{`export default {f: NaN, g: -Infinity, a: 1}`, "g", `1:28 -Infinity`},
		{`export default function () { return {a: 1} }`, "", `1:16 function () { return {a: 1} }`},
		{`export default async () => ({a: 1})`, "", `1:16 async () => ({a: 1})`},
		{`export default make({a: 1})`, "", `1:16 make({a: 1})`},
		{`import {make} from "x"; export default make({a: 1}, 2)`, "", `1:40 make({a: 1}, 2)`},
		{`import {make} from "x"; export default make(() => ({a: 1}))`, "", `1:40 make(() => ({a: 1}))`},
		{`import {make} from "x"; export default {f: make({b: 1}), a: 1}`, "f", `1:44 make({b: 1})`},
		{`import {make} from "x"; const c = make({b: 1}); export default {f: c, a: 1}`, "f", `1:68 c`},
		{`export default {f: x as 'a' | { a: A<B, C> }[], a: 1}`, "f", `1:20 x as 'a' | { a: A<B, C> }[]`},
		{`export default {f: (a): a is A<B, C> => a ? b : c, a: 1}`, "f", `1:20 (a): a is A<B, C> => a ? b : c`},
		{`import c from "x"; export default c`, "", `1:35 c`},
		{`import c from "x"; export { c as default }`, "", `1:29 c`},
		{`export default {...other, a: 1}`, "", `1:17 ...other`},
		{`module.exports = require("./other")`, "", `1:18 require("./other")`},
	} {
		v, err := ParseJS([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		f := v
		if c.path != "" {
			f, _ = v.Lookup(strings.Fields(c.path)...)
			if a, ok := v.Lookup("a"); !ok || a.Num != "1" {
				t.Errorf("%s: the member behind the code is lost: %s", c.in, v.JSON())
			}
		}
		if got := f.Pos.String() + " " + f.Str; f.Kind != Code || got != c.want || f.End > len(c.in) ||
			f.End <= f.Pos.Offset {
			t.Errorf("%s:\n got %v %s (until %d)\nwant code %s", c.in, f.Kind, got, f.End, c.want)
		}
	}
	v, _ := ParseJS([]byte("export default {a: [1, {b: x()}]}"))
	want := "1:28: the value of config.a[1].b is code (x()), not a literal; this program reads configuration without " +
		"running it"
	var syntax *SyntaxError
	if err := v.NotLiteral("config"); !errors.As(err, &syntax) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if a, _ := v.Lookup("a", "0"); a.NotLiteral("a") != nil {
		t.Error("a number is code")
	}
}

func TestParseJSNamesThePlace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `1:1: expected export default {…} or module.exports = {…}, found end of input`},
		{`const a = {}`, `1:13: expected export default {…} or module.exports = {…}, found end of input`},
		{`export default`, `1:15: expected a value, found end of input`},
		{"export default {\n  a: 1\n  b: 2\n}", `3:3: expected ',' or '}' after a member, found 'b'`},
		{`export default {a 1}`, `1:19: expected ':' after the key "a", found '1'`},
		{`export default {a: }`, `1:20: expected a value, found '}'`},
		{`export default {a: 1 +}`, `1:23: expected a value after '+', found '}'`},
		{`export default {a: 1`, `1:21: expected ',' or '}' after a member, found end of input`},
		{`export default {a: [1, 2}`, `1:25: expected ',' or ']' after an item, found '}'`},
		{`export default {a: "x}`, `1:23: expected " to close the string, found end of input`},
		{"export default {a: \"x\n}", `1:22: expected " to close the string, found end of line`},
		{"export default {a: `x}", "1:23: expected ` to close the template of 1:20, found end of input"},
		{`export default {a: f(}`, `1:22: expected ) to close the bracket of 1:21, found '}'`},
		{`export default {a: f(`, `1:22: expected ) to close the bracket of 1:21, found end of input`},
		{`export default {a: 1, a: 2}`, `1:23: key "a" is given twice, first at 1:17`},
		{
			`export default {__proto__: {a: 1}}`,
			`1:17: the key __proto__ says what an object inherits, which cannot be configured`,
		},
		{`export default {get f: 1}`, `1:22: expected '(' after the name of a function, found ':'`},
		{`export default {a: 010}`, `1:20: a number must not begin with 0`},
		{`export default {a: 1__0}`, `1:21: expected the end of the number, found '_'`},
		{`export default {a: 10n}`, `1:22: expected the end of the number, found 'n'`},
		{`export default {a: 0b2}`, `1:22: expected a binary digit, found '2'`},
		{`export default {a: "\u{110000}"}`, `1:21: the escape needs a hexadecimal code point up to 10FFFF in braces`},
		{`export default {} foo`, `1:19: expected ';' or the end of the line after the value, found 'f'`},
		{`export default {}; export default {}`, `1:20: the module exports its configuration twice, first at 1:1`},
		{`export default {}; module.exports = {}`, `1:20: the module exports twice: by export and by module.exports`},
		{
			`export { default } from "./x"`,
			`1:10: the configuration is exported from another module; this program reads one file, without running it`,
		},
		{
			`export * as default from "./x"`,
			`1:13: the configuration is exported from another module; this program reads one file, without running it`,
		},
		{`const a = {b: a}; export default a`, `1:15: a is used before it has its value, at 1:17`},
		{`const a = {b}; const b = {a}; export default a`, `1:12: b is used before it has its value, at 1:29`},
		{`export default {b}; const b = 1`, `1:17: b is used before it has its value, at 1:32`},
		{
			"const c = {}\nc.a = 1\nexport default c",
			`2:1: this statement is code that may change c, which is exported; this program reads configuration without running it`,
		},
		{
			"let c = 'a'\nc = 'b'\nexport default {c}",
			`2:1: this statement is code that may change c, which is exported; this program reads configuration without running it`,
		},
		{
			"const c = {}\nfunction f() { c.a = 1 }\nf()\nexport default c",
			`3:1: this statement is code that may change c, which is exported; this program reads configuration without running it`,
		},
		{
			"const c = {}\nconst f = () => { c.a = 1 }\nf()\nexport default c",
			`3:1: this statement is code that may change c, which is exported; this program reads configuration without running it`,
		},
		{
			"const c = {}\nconst x = Object.assign(c, {})\nexport default c",
			`2:7: this statement is code that may change c, which is exported; this program reads configuration without running it`,
		},
		{
			"module.exports = {}\nmodule.exports.a.b = 1",
			`2:1: this statement is code that may change module, which is exported; this program reads configuration without running it`,
		},
		{`module.exports = {}; exports.a = 1`, `1:22: exports.a has no effect after module.exports was set`},
		{
			`module.exports = {}; return`,
			`1:22: this statement ends the module before its end; this program reads configuration without running it`,
		},
		{`exports = {}`, `1:1: exports = … exports nothing; write module.exports = …`},
		{`import x from y; export default {}`, `1:16: expected the name of a module in quotes, found ';'`},
		{`/* x`, `1:1: the comment is not closed with */`},
		{"export default {a: \"\xff\"}", `1:21: byte 0xFF is not UTF-8`},
		{`}`, `1:1: expected a value, found '}'`},
		{"\xff\xfe{}", `1:1: expected JavaScript, found byte 0xFF, which is not UTF-8`},
		{"export default {a: f(\x00)}", `1:22: expected JavaScript, found U+0000`},
		{`export default ` + strings.Repeat("[", 201), `1:216: nested deeper than 200 levels`},
		{`export default ` + strings.Repeat("(", 201), ``},
		{`export default {a: f` + strings.Repeat("(", 100000), ``},
		{`export default <` + strings.Repeat("A<", 100000), ``},
		{`export default {a: ` + strings.Repeat("`${", 100000), ``},
		{strings.Repeat("if (a) ", 100000), ``},
		{`const a: ` + strings.Repeat("(a) => ", 100000), ``},
	} {
		_, err := ParseJS([]byte(c.in))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || c.want != "" && err.Error() != c.want {
			t.Errorf("%.80s:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestParseJSIsBounded(t *testing.T) {
	laughs := "const a0 = ['ha', 'ha'];"
	nested := "const n0 = [];"
	for i := range 60 {
		laughs += fmt.Sprintf("const a%d = [a%d, a%d];", i+1, i, i)
	}
	for i := range 300 {
		nested += fmt.Sprintf("const n%d = [n%d];", i+1, i)
	}
	spread := "const s0 = [1, 2];"
	for i := range 60 {
		spread += fmt.Sprintf("const s%d = [...s%d, ...s%d];", i+1, i, i)
	}
	for _, c := range []struct{ in, want string }{
		{laughs + "export default a60", "references make the value much larger"},
		{nested + "export default n300", "nested deeper than 200 levels"},
		{spread + "export default s60", "references make the value larger than"},
		{
			"export default " + strings.Repeat("(", 190) + "f" + strings.Repeat("+1)", 190) + strings.Repeat(" ",
				1<<16),
			"",
		},
		{"export default {f: a" + strings.Repeat("<b,b,c", 100000) + "}", "nested deeper"},
		{"export default [" + strings.Repeat(strings.Repeat("a<", 190)+strings.Repeat(">", 190)+"1,", 100) + "]", ""},
		{"export default [" + strings.Repeat("a<(b),", 20000) + "]", ""},
	} {
		start := time.Now()
		_, err := ParseJS([]byte(c.in))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.60s: got %v, want %s", c.in, err, c.want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%.60s: took %v", c.in, took)
		}
	}
}

func TestParseJSKnowsPlaces(t *testing.T) {
	v, err := ParseJS([]byte("const ä = 'ü';\nexport default {\n  b: ä, ä, c: (1) as const}"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := v.Member("b")
	if b.KeyPos.String() != "3:3" || b.Value.Pos.String() != "1:11" || b.Value.End != 15 {
		t.Errorf("got %+v", b)
	}
	if short, _ := v.Member("ä"); short.KeyPos.String() != "3:9" {
		t.Errorf("got %+v", short)
	}
	if c, _ := v.Member("c"); c.Value.Pos.String() != "3:16" || v.Pos.String() != "2:16" {
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
